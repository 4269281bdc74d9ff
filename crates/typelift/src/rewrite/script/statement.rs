//! Parsing of statements.

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};

use typelift_promote::ElementType;

use super::Script;
use super::expression::Formula;
use crate::base::names::nearest;
use crate::edit::inputs_outputs::End;
use crate::model::shape::Shape;
use crate::precision::KeepPattern;
use crate::rewrite::Rule;
use crate::rewrite::notation::{Cursor, NotationError, tensor_type};

/// Statement other than a rule. In names, `*` matches any text and `?` any character.
#[derive(Clone, Debug)]
pub(super) enum Statement {
    Rename { old: String, new: String },
    Input { name: String, element_type: ElementType, shape: Option<Shape> },
    Before { name: String, value: Formula },
    Output { name: String, element_type: ElementType },
    After { name: String, value: Formula },
    Let { name: String, value: Formula },
    AddInput { name: String, element_type: ElementType, shape: Option<Shape> },
    AddOutput { name: String, value: Formula },
    Remove { end: End, names: Vec<String> },
    Freeze { name: String, value: Formula },
    Order { end: End, names: Vec<String> },
    Redirect { name: String, value: Formula },
    Stateful { past: String, present: String, beam: Option<String> },
    Stateless { names: Option<(String, String)> },
    State { name: String, element_type: ElementType, shape: Option<Shape> },
    Layout { name: String, value: String },
    Tap { name: String, new: Option<String> },
    Cut { names: Vec<String> },
    Piece { from: Vec<String>, to: Vec<String> },
    CutBlocks { numbers: RangeInclusive<u64> },
    Inline { name: String },
    Join { file: PathBuf, prefix: String, joints: Vec<(String, String)> },
    Set { name: String, value: Formula },
    Info { owner: Owner, path: String, value: String },
    Lora { file: PathBuf, scale: f64 },
    Keep { patterns: Vec<KeepPattern>, marks: bool },
    Expect { name: String, least: usize, most: usize },
}

/// Extent of a statement's changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touches {
    /// No changes: the statement is a check or names an expression.
    Nothing,
    /// Names, values and metadata, so that the declared types and shapes remain valid.
    Layers,
    /// Inputs, outputs or edges, so that types and shapes can change.
    InputsAndOutputs,
}

impl Statement {
    pub(super) fn touches(&self) -> Touches {
        match self {
            Self::Let { .. } | Self::Expect { .. } => Touches::Nothing,
            Self::Rename { .. } | Self::Layout { .. } | Self::Set { .. } => Touches::Layers,
            Self::Info { .. } | Self::Keep { .. } | Self::Lora { .. } => Touches::Layers,
            Self::Input { .. } | Self::Output { .. } | Self::AddInput { .. } | Self::AddOutput { .. } => {
                Touches::InputsAndOutputs
            }
            Self::Before { .. } | Self::After { .. } | Self::Redirect { .. } => Touches::InputsAndOutputs,
            Self::Remove { .. } | Self::Freeze { .. } | Self::Order { .. } => Touches::InputsAndOutputs,
            Self::Stateful { .. } | Self::Stateless { .. } | Self::State { .. } => Touches::InputsAndOutputs,
            Self::Tap { .. } | Self::Cut { .. } | Self::Piece { .. } => Touches::InputsAndOutputs,
            Self::CutBlocks { .. } => Touches::InputsAndOutputs,
            Self::Inline { .. } | Self::Join { .. } => Touches::InputsAndOutputs,
        }
    }
}

/// Owner of the metadata that a statement writes.
#[derive(Clone, Debug)]
pub(super) enum Owner {
    Model,
    /// The layers with this name, or the output `NAME.1` of a layer.
    Layers(String),
    /// The layers with the name at the start of the path. If there is none, the model.
    Named,
}

/// The words that begin a statement, each with its form.
const FORMS: [(&str, &str); 26] = [
    ("lora", "lora FILE.safetensors [SCALE]"),
    ("rename", "rename OLD NEW"),
    ("input", "input NAME : TYPE[SHAPE]"),
    ("before", "before NAME : EXPRESSION with _"),
    ("output", "output NAME : TYPE"),
    ("after", "after NAME : EXPRESSION with _"),
    ("tap", "tap TENSOR [as NAME]"),
    ("cut", "cut [A, …] .. [B, …]"),
    ("inline", "inline IF"),
    ("join", "join FILE.xml [as PREFIX] [: OUTPUT -> INPUT, …]"),
    ("set", "set CONSTANT = EXPRESSION"),
    ("info", "info [LAYER] : KEY/KEY = VALUE"),
    ("keep", "keep f32 NAME, …"),
    ("unkeep", "unkeep NAME, …"),
    ("expect", "expect RULE NUMBER"),
    ("def", "def NAME(x, …) = EXPRESSION"),
    ("let", "let NAME = EXPRESSION"),
    ("add", "add input NAME : TYPE[SHAPE]` or `add output NAME = EXPRESSION"),
    ("remove", "remove output NAME, …` or `remove input NAME, …"),
    ("freeze", "freeze INPUT = EXPRESSION"),
    ("order", "order inputs NAME, …` or `order outputs NAME, …"),
    ("redirect", "redirect TENSOR -> EXPRESSION"),
    ("stateful", "stateful INPUT -> OUTPUT [reorder INPUT]"),
    ("stateless", "stateless [INPUT -> OUTPUT]"),
    ("state", "state NAME : TYPE[SHAPE]"),
    ("layout", "layout NAME = LAYOUT"),
];

const REMOVAL: &str =
    "`redirect LAYER -> TENSOR` connects the consumers of a layer to a tensor before it, and removes it";

/// Words of other programs that begin no statement, each with the statement that does it.
const FOREIGN: [(&str, &str); 12] = [
    ("batch", "`input NAME : [1,…]` changes the shape of an input"),
    (
        "cast",
        "`input NAME : TYPE` changes the type of an input; `after NAME : Convert(_) {destination_type=TYPE}` adds a Convert",
    ),
    ("connect", "`redirect TENSOR -> OTHER` connects the consumers of a tensor to another"),
    ("delete", REMOVAL),
    ("drop", REMOVAL),
    ("extract", "`cut A .. B` keeps the layers between tensors"),
    ("fuse", "a rule is `PATTERN => REPLACEMENT`, such as `Multiply(x, Sigmoid(x)) => Swish-4(x)`"),
    ("insert", "`before NAME : Relu(_)` and `after NAME : Relu(_)` add layers"),
    ("replace", "a rule is `PATTERN => REPLACEMENT`, such as `Relu(x) => Gelu-7(x)`"),
    ("reshape", "`input NAME : [1,3,224,224]` changes the shape of an input"),
    ("transpose", "`before NAME : Transpose(_, [0, 3, 1, 2])` adds a Transpose"),
    ("type", "`input NAME : TYPE` changes the type of an input"),
];

impl Script {
    /// Parses the statement, the rule or the definition in a range of the text.
    pub(super) fn read(&mut self, text: &str, range: Range<usize>) -> Result<(), NotationError> {
        let mut cursor = Cursor::within(text, range.clone());
        cursor.skip_space();
        let start = cursor.at;
        let word = cursor.word();
        let is_statement = cursor.peek().is_none_or(char::is_whitespace) && !cursor.sees("=>");
        if word == "def" && is_statement {
            return self.definitions.read(text, cursor.at..range.end);
        }
        let statement = if is_statement { Statement::read(word, &mut cursor, range.end) } else { Ok(None) };
        let form = FORMS.iter().find(|(known, _)| *known == word).map(|(_, form)| format!("write `{form}`"));
        let with_form = |error: NotationError| match &form {
            Some(form) if error.help().is_none() => error.with_help(form),
            _ => error,
        };
        let statement = statement.map_err(with_form)?;
        let Some(statement) = statement else {
            cursor.at = start;
            return self.rule(text, cursor, range);
        };
        if !cursor.is_done() {
            return Err(with_form(cursor.expected("the end of the line")));
        }
        if let Statement::Let { name, .. } = &statement {
            self.definitions.declare(name);
        }
        self.statements.push(statement);
        Ok(())
    }

    /// Parses `[NAME:] PATTERN => REPLACEMENT`.
    fn rule(&mut self, text: &str, mut cursor: Cursor, range: Range<usize>) -> Result<(), NotationError> {
        let start = cursor.at;
        let name = cursor.run(|c| c.is_alphanumeric() || "_-./".contains(c));
        let rest = &text[start..range.end];
        let is_rule = rest.contains("=>") || rest.contains('(') || ["try", "once"].contains(&name);
        let foreign = FOREIGN.iter().find(|(word, _)| *word == name).map(|(_, help)| (*help).to_owned());
        let help = foreign
            .or_else(|| nearest(name, FORMS.map(|(word, _)| word)).map(|near| format!("did you mean `{near}`?")));
        if !is_rule && let Some(help) = help {
            let error = cursor.error(start..start + name.len(), format!("`{name}` is not a statement"));
            return Err(error.with_help(help));
        }
        self.rules.push(Rule::read(text, start..range.end, &self.definitions)?);
        Ok(())
    }
}

impl Statement {
    /// Parses the statement that begins with this word and ends at `end`; `None` if the word begins no statement.
    fn read(word: &str, cursor: &mut Cursor, end: usize) -> Result<Option<Self>, NotationError> {
        Ok(Some(match word {
            "rename" => Self::Rename { old: cursor.name("the old name")?, new: cursor.name("the new name")? },
            "input" => {
                let name = name_before_colon(cursor)?;
                let (element_type, shape) = tensor_type(cursor)?;
                Self::Input { name, element_type, shape }
            }
            "output" => {
                let name = name_before_colon(cursor)?;
                Self::Output { name, element_type: tensor_type(cursor)?.0 }
            }
            "before" | "after" => {
                let name = name_before_colon(cursor)?;
                let value = Formula::read(cursor, end)?;
                if word == "before" { Self::Before { name, value } } else { Self::After { name, value } }
            }
            "tap" => {
                let name = cursor.name("a tensor")?;
                let new = cursor.eat_word("as").then(|| cursor.name("the name of the output")).transpose()?;
                Self::Tap { name, new }
            }
            "cut" if let Some(numbers) = blocks(cursor)? => Self::CutBlocks { numbers },
            "cut" => {
                let from = names(cursor)?;
                let to = cursor.eat("..").then(|| names(cursor)).transpose()?;
                match to {
                    _ if from.is_empty() && to.as_ref().is_none_or(Vec::is_empty) => {
                        return Err(cursor.expected("a tensor"));
                    }
                    Some(to) => Self::Piece { from, to },
                    None => Self::Cut { names: from },
                }
            }
            "inline" => Self::Inline { name: cursor.name("an If")? },
            "join" => Self::join(cursor)?,
            "set" => {
                let name = cursor.name("a constant")?;
                cursor.expect("=")?;
                Self::Set { name, value: Formula::read(cursor, end)? }
            }
            "info" => Self::info(cursor)?,
            "lora" => {
                let file = cursor.name("the .safetensors file of an adapter")?.into();
                let scale = if cursor.is_done() { Some(1.0) } else { cursor.clone().name("")?.parse().ok() };
                let scale = scale
                    .filter(|scale: &f64| scale.is_finite())
                    .ok_or_else(|| cursor.expected("a number, the scale of the adapter"))?;
                cursor.at = if cursor.is_done() { cursor.at } else { end };
                Self::Lora { file, scale }
            }
            "keep" => {
                let (start, ty) = (cursor.at, cursor.name("f32")?);
                if ty != "f32" {
                    let error = cursor.error(start..cursor.at, format!("layers are kept in f32, not in {ty}"));
                    return Err(error.with_help("write `keep f32 NAME`: OpenVINO has no mark for another type"));
                }
                Self::Keep { patterns: patterns(cursor)?, marks: true }
            }
            "unkeep" => Self::Keep { patterns: patterns(cursor)?, marks: false },
            "expect" => {
                let name = cursor.name("the name of a rule")?;
                let (least, most) = bounds(cursor)?;
                Self::Expect { name, least, most }
            }
            _ => return Self::rewiring(word, cursor, end),
        }))
    }

    /// Parses statements about edges, state and layouts.
    fn rewiring(word: &str, cursor: &mut Cursor, end: usize) -> Result<Option<Self>, NotationError> {
        Ok(Some(match word {
            "let" => {
                let name = cursor.word().to_owned();
                if name.is_empty() || name == "_" {
                    return Err(cursor.expected("a name"));
                }
                cursor.expect("=")?;
                Self::Let { name, value: Formula::read(cursor, end)? }
            }
            "add" if which_end(cursor)? == End::Input => {
                let name = name_before_colon(cursor)?;
                let (element_type, shape) = tensor_type(cursor)?;
                Self::AddInput { name, element_type, shape }
            }
            "add" => {
                let name = cursor.name("the name of the output")?;
                cursor.expect("=")?;
                Self::AddOutput { name, value: Formula::read(cursor, end)? }
            }
            "remove" => Self::Remove { end: which_end(cursor)?, names: some_names(cursor)? },
            "order" => Self::Order { end: which_end(cursor)?, names: some_names(cursor)? },
            "freeze" => {
                let name = cursor.name("an input")?;
                cursor.expect("=")?;
                Self::Freeze { name, value: Formula::read(cursor, end)? }
            }
            "redirect" => {
                let name = cursor.name("a tensor")?;
                cursor.expect("->")?;
                Self::Redirect { name, value: Formula::read(cursor, end)? }
            }
            "stateful" => {
                let past = cursor.name("an input")?;
                cursor.expect("->")?;
                let present = cursor.name("the output with its next value")?;
                let beam = cursor.eat_word("reorder").then(|| cursor.name("an input of indices")).transpose()?;
                Self::Stateful { past, present, beam }
            }
            "stateless" if cursor.is_done() => Self::Stateless { names: None },
            "stateless" => {
                let past = cursor.name("the name of the input")?;
                cursor.expect("->")?;
                Self::Stateless { names: Some((past, cursor.name("the name of the output")?)) }
            }
            "state" => {
                let name = name_before_colon(cursor)?;
                let (element_type, shape) = tensor_type(cursor)?;
                Self::State { name, element_type, shape }
            }
            "layout" => {
                let name = cursor.name("an input or output")?;
                cursor.expect("=")?;
                cursor.skip_space();
                let text = &cursor.text[cursor.at..end];
                let value = match cursor.quoted()? {
                    Some(quoted) => quoted,
                    None => text.split(" #").next().unwrap_or(text).split_whitespace().collect(),
                };
                cursor.at = end;
                Self::Layout { name, value }
            }
            _ => return Ok(None),
        }))
    }

    /// Parses `[[LAYER] :] PATH = VALUE`.
    fn info(cursor: &mut Cursor) -> Result<Self, NotationError> {
        let mut ahead = cursor.clone();
        let owner = if ahead.eat(":") {
            *cursor = ahead;
            Owner::Model
        } else if let Ok(name) = name_before_colon(&mut ahead) {
            *cursor = ahead;
            Owner::Layers(name)
        } else {
            Owner::Named
        };
        cursor.skip_space();
        let start = cursor.at;
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
        if path.contains('.') && !path.contains(['/', '"']) && !matches!(owner, Owner::Layers(_)) {
            let error = cursor.error(start..cursor.at, format!("`{path}` would be one key with a dot in its name"));
            let help = format!(
                "write `info {} = …` for nested keys, or `info \"{path}\" = …` for one key",
                path.replace('.', "/")
            );
            return Err(error.with_help(help));
        }
        cursor.expect("=")?;
        Ok(Self::Info { owner, path, value: cursor.name("a value")? })
    }

    /// Parses `FILE [as PREFIX] [: OUTPUT -> INPUT, …]`.
    fn join(cursor: &mut Cursor) -> Result<Self, NotationError> {
        let file = cursor.name("the file of a model")?.into();
        let prefix = if cursor.eat_word("as") { cursor.name("the prefix of its names")? } else { String::new() };
        let mut joints = Vec::new();
        if cursor.eat(":") {
            loop {
                let output = item(cursor)?.ok_or_else(|| cursor.expected("an output of this model"))?;
                cursor.expect("->")?;
                let input = item(cursor)?.ok_or_else(|| cursor.expected("an input of the other model"))?;
                joints.push((output, input));
                if !cursor.eat(",") {
                    break;
                }
            }
        }
        Ok(Self::Join { file, prefix, joints })
    }

    pub(super) fn files(&self) -> Vec<&Path> {
        match self {
            Self::Join { file, .. } | Self::Lora { file, .. } => vec![file],
            Self::Set { value, .. }
            | Self::Let { value, .. }
            | Self::AddOutput { value, .. }
            | Self::Freeze { value, .. }
            | Self::Redirect { value, .. }
            | Self::Before { value, .. }
            | Self::After { value, .. } => value.files().collect(),
            _ => Vec::new(),
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            Self::Rename { old, new } => format!("rename {old} {new}"),
            Self::Input { name, element_type, shape } => {
                format!("input {name} : {element_type}{}", shape.as_ref().map(ToString::to_string).unwrap_or_default())
            }
            Self::Before { name, .. } => format!("before {name}"),
            Self::Output { name, element_type } => format!("output {name} : {element_type}"),
            Self::After { name, .. } => format!("after {name}"),
            Self::Tap { name, .. } => format!("tap {name}"),
            Self::Inline { name } => format!("inline {name}"),
            Self::Cut { names } => format!("cut {}", names.join(", ")),
            Self::Piece { from, to } => {
                format!("cut {} .. {}", from.join(", "), to.join(", ")).replace("  ", " ").trim_end().to_owned()
            }
            Self::CutBlocks { numbers } => format!("cut block {}..{}", numbers.start(), numbers.end()),
            Self::Join { file, .. } => format!("join {}", file.display()),
            Self::Lora { file, .. } => format!("lora {}", file.display()),
            Self::Set { name, .. } => format!("set {name}"),
            Self::Info { owner: Owner::Layers(name), path, .. } => format!("info {name} : {path}"),
            Self::Info { path, .. } => format!("info {path}"),
            Self::Keep { patterns, marks } => {
                let patterns: Vec<_> = patterns.iter().map(ToString::to_string).collect();
                format!("{} {}", if *marks { "keep f32" } else { "unkeep" }, patterns.join(" "))
            }
            Self::Expect { name, .. } => format!("expect {name}"),
            Self::Let { name, .. } => format!("let {name}"),
            Self::AddInput { name, .. } => format!("add input {name}"),
            Self::AddOutput { name, .. } => format!("add output {name}"),
            Self::Remove { end, names } => format!("remove {end} {}", names.join(", ")),
            Self::Freeze { name, .. } => format!("freeze {name}"),
            Self::Order { end, names } => format!("order {end}s {}", names.join(", ")),
            Self::Redirect { name, .. } => format!("redirect {name}"),
            Self::Stateful { past, present, .. } => format!("stateful {past} -> {present}"),
            Self::Stateless { names: Some((past, present)) } => format!("stateless {past} -> {present}"),
            Self::Stateless { names: None } => "stateless".to_owned(),
            Self::State { name, .. } => format!("state {name}"),
            Self::Layout { name, .. } => format!("layout {name}"),
        }
    }
}

/// Parses `input`, `inputs`, `output` or `outputs`.
fn which_end(cursor: &mut Cursor) -> Result<End, NotationError> {
    let mut ahead = cursor.clone();
    let end = match ahead.word() {
        "input" | "inputs" => End::Input,
        "output" | "outputs" => End::Output,
        "layer" | "node" | "op" => return Err(cursor.expected("`input` or `output`").with_help(REMOVAL)),
        _ => return Err(cursor.expected("`input` or `output`")),
    };
    *cursor = ahead;
    Ok(end)
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
    let mut ahead = cursor.clone();
    let name = ahead.run(|c| !c.is_whitespace() && c != ',');
    if ["", "..", "->"].contains(&name) || name.starts_with('#') {
        return Ok(None);
    }
    *cursor = ahead;
    Ok(Some(name.to_owned()))
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
        let name = match cursor.quoted()? {
            Some(quoted) => quoted,
            None => cursor.run(|c| !c.is_whitespace() && c != ',' && c != ']').to_owned(),
        };
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

/// Parses the patterns up to the end of a statement, one at least: names, or `block 0..1`.
fn patterns(cursor: &mut Cursor) -> Result<Vec<KeepPattern>, NotationError> {
    let mut patterns = Vec::new();
    while patterns.is_empty() || !cursor.is_done() {
        patterns.push(match blocks(cursor)? {
            Some(numbers) => KeepPattern::Blocks(*numbers.start(), *numbers.end()),
            None => KeepPattern::from(cursor.name("a layer")?.as_str()),
        });
    }
    Ok(patterns)
}

/// Parses `block 10..20` or `block 3`, if it comes here. A name `block` without numbers is an ordinary one.
fn blocks(cursor: &mut Cursor) -> Result<Option<RangeInclusive<u64>>, NotationError> {
    let mut ahead = cursor.clone();
    if !ahead.eat_word("block") {
        return Ok(None);
    }
    ahead.skip_space();
    let start = ahead.at;
    let text = ahead.run(|c| c.is_ascii_digit() || c == '.').to_owned();
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
        .ok_or_else(|| cursor.error(start..cursor.at, "expected a number of applications: `1`, `1..` or `1..3`"))
}
