//! Suggestions for invalid command lines.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

use crate::nearest::nearest;

/// Commands of other programs, each with the command here.
const VERBS: &[(&str, &str)] = &[
    ("align", "convert"),
    ("analyze", "stats"),
    ("cat", "show"),
    ("compare", "diff"),
    ("count", "stats"),
    ("describe", "MODEL.xml"),
    ("display", "show"),
    ("draw", "view"),
    ("dump", "show"),
    ("compress", "convert --compress f16"),
    ("decompress", "convert --decompress"),
    ("downgrade", "convert --target RELEASE"),
    ("fix", "check --fix"),
    ("minimize", "reduce"),
    ("quantize", "convert --quantize int8_sym"),
    ("reshape", "convert --set-shape NAME=SHAPE"),
    ("test", "verify"),
    ("graph", "view"),
    ("info", "MODEL.xml"),
    ("inspect", "MODEL.xml"),
    ("lint", "check"),
    ("list", "show"),
    ("optimize", "rewrite"),
    ("plot", "view"),
    ("print", "show"),
    ("repair", "check --fix"),
    ("replace", "rewrite"),
    ("shapes", "infer"),
    ("summary", "MODEL.xml"),
    ("trace", "why"),
    ("transform", "rewrite"),
    ("types", "infer"),
    ("validate", "check"),
    ("version", "--version"),
    ("visualize", "view"),
];

/// Options of other programs, each with the option here.
const OPTIONS: &[(&str, &str)] = &[
    ("--compress_to_fp16", "--compress f16"),
    ("--data_type", "--compress f16"),
    ("--fmt", "--format"),
    ("--fp16", "--compress f16"),
    ("--github", "--format github"),
    ("--half", "--compress f16"),
    ("--ignore", "--allow"),
    ("--input-shape", "--set-shape NAME=SHAPE"),
    ("--input_shape", "--set-shape NAME=SHAPE"),
    ("--int4", "--quantize int4_sym"),
    ("--int8", "--quantize int8_sym"),
    ("--json", "--format json"),
    ("--out", "--output"),
    ("--output_model", "--output"),
    ("--precision", "--for"),
    ("--shape", "--set-shape NAME=SHAPE"),
    ("--sarif", "--format sarif"),
    ("--strict", "--deny warnings"),
    ("--threads", "--jobs"),
    ("--verbose", "--all"),
    ("--weights", "--bin"),
    ("--werror", "--deny warnings"),
    ("-f", "--format"),
];

/// The hidden command that a model without a command runs.
pub(crate) const OVERVIEW: &str = "_of-model";

/// Adds the command for a model that is given without one: an overview.
pub(crate) fn with_command(mut arguments: Vec<OsString>) -> Vec<OsString> {
    let is_model = |path: &Path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml"));
    if arguments.get(1).is_some_and(|first| is_model(Path::new(first))) {
        arguments.insert(1, OVERVIEW.into());
    }
    arguments
}

/// Adds a suggestion to the error.
pub(crate) fn with_tip(mut error: Error, program: &mut Command) -> Error {
    program.build();
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => {
            text(&error, ContextKind::InvalidSubcommand).and_then(|word| verb_tip(&word, program))
        }
        ErrorKind::UnknownArgument => {
            text(&error, ContextKind::InvalidArg).zip(text(&error, ContextKind::Usage)).and_then(|(option, usage)| {
                let is_guessed = error.get(ContextKind::SuggestedArg).is_some();
                option_tip(&option, &usage, program, is_guessed)
            })
        }
        _ => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    error
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        _ => None,
    }
}

fn verb_tip(word: &str, program: &Command) -> Option<String> {
    if let Some((_, verb)) = VERBS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        return Some(format!("`typelift {verb}` does that"));
    }
    let names = program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    nearest(word, names, 0.7).map(|name| format!("did you mean `{name}`?"))
}

/// Returns a replacement for an option that the command of a usage line does not have.
fn option_tip(option: &str, usage: &str, program: &Command, is_guessed: bool) -> Option<String> {
    let after = usage.split_once("typelift ")?.1;
    let verb = program.get_subcommands().find(|verb| after.split_whitespace().next() == Some(verb.get_name()))?;
    let name = option.split('=').next().unwrap_or(option);
    let has = |verb: &Command, option: &str| spellings(verb).any(|known| option.split(' ').next() == Some(&known));
    if let Some((_, meant)) = OPTIONS.iter().find(|(other, meant)| *other == name && has(verb, meant)) {
        return Some(format!("write `{meant}`"));
    }
    if is_guessed {
        return None;
    }
    let others: Vec<_> = program.get_subcommands().filter(|other| !other.is_hide_set() && has(other, name)).collect();
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(|other| other.get_name()).collect();
        return Some(format!("`{name}` is an option of {}", names.join(", ")));
    }
    let known: Vec<_> = spellings(verb).filter(|known| known.starts_with("--") && known != "--help").collect();
    Some(format!("the options of `typelift {}` are {}", verb.get_name(), known.join(", ")))
}

/// Iterates over all spellings of a command's options.
fn spellings(verb: &Command) -> impl Iterator<Item = String> + '_ {
    let of = |option: &Arg| {
        let long = option.get_long().map(|name| format!("--{name}"));
        long.into_iter().chain(option.get_short().map(|letter| format!("-{letter}"))).collect::<Vec<_>>()
    };
    verb.get_arguments().flat_map(of)
}
