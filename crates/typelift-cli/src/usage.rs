//! Tips for a command that cannot be understood.

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};

/// What other programs call verbs, each with the verb here.
const VERBS: &[(&str, &str)] = &[
    ("align", "convert"),
    ("analyze", "stats"),
    ("cat", "show"),
    ("compare", "diff"),
    ("count", "stats"),
    ("describe", "show"),
    ("display", "show"),
    ("draw", "view"),
    ("dump", "show"),
    ("fix", "convert"),
    ("graph", "view"),
    ("info", "stats"),
    ("inspect", "show"),
    ("lint", "check"),
    ("list", "show"),
    ("optimize", "rewrite"),
    ("plot", "view"),
    ("print", "show"),
    ("repair", "convert"),
    ("replace", "rewrite"),
    ("shapes", "infer"),
    ("summary", "stats"),
    ("trace", "why"),
    ("transform", "rewrite"),
    ("types", "infer"),
    ("validate", "check"),
    ("version", "--version"),
    ("visualize", "view"),
];

/// What other programs call options, each with what to write here.
const OPTIONS: &[(&str, &str)] = &[
    ("--fmt", "--format"),
    ("--github", "--format github"),
    ("--ignore", "--allow"),
    ("--json", "--format json"),
    ("--out", "--output"),
    ("--sarif", "--format sarif"),
    ("--strict", "--deny warnings"),
    ("--threads", "--jobs"),
    ("--verbose", "--all"),
    ("--weights", "--bin"),
    ("--werror", "--deny warnings"),
    ("-f", "--format"),
];

/// The error with a tip that helps.
pub(crate) fn with_tip(mut error: Error, program: &mut Command) -> Error {
    program.build();
    let tip = match error.kind() {
        ErrorKind::InvalidSubcommand => text(&error, ContextKind::InvalidSubcommand).and_then(|word| verb_tip(&word)),
        ErrorKind::UnknownArgument => text(&error, ContextKind::InvalidArg)
            .zip(text(&error, ContextKind::Usage))
            .filter(|_| error.get(ContextKind::SuggestedArg).is_none())
            .and_then(|(option, usage)| option_tip(&option, &usage, program)),
        _ => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedSubcommand);
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

fn verb_tip(word: &str) -> Option<String> {
    if word.ends_with(".xml") {
        return Some(format!("say what to do with the model first: `typelift check {word}`"));
    }
    let (_, verb) = VERBS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word))?;
    Some(format!("`typelift {verb}` does that"))
}

/// What to write for an option that the verb of a usage line does not have.
fn option_tip(option: &str, usage: &str, program: &Command) -> Option<String> {
    let after = usage.split_once("typelift ")?.1;
    let verb = program.get_subcommands().find(|verb| after.split_whitespace().next() == Some(verb.get_name()))?;
    let name = option.split('=').next().unwrap_or(option);
    let has = |verb: &Command, option: &str| spellings(verb).any(|known| option.split(' ').next() == Some(&known));
    if let Some((_, meant)) = OPTIONS.iter().find(|(other, meant)| *other == name && has(verb, meant)) {
        return Some(format!("write `{meant}`"));
    }
    let others: Vec<_> = program.get_subcommands().filter(|other| !other.is_hide_set() && has(other, name)).collect();
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(|other| other.get_name()).collect();
        return Some(format!("`{name}` is an option of {}", names.join(", ")));
    }
    let known: Vec<_> = spellings(verb).filter(|known| known.starts_with("--") && known != "--help").collect();
    Some(format!("the options of `typelift {}` are {}", verb.get_name(), known.join(", ")))
}

/// Every way to write the options of a verb.
fn spellings(verb: &Command) -> impl Iterator<Item = String> + '_ {
    let of = |option: &Arg| {
        let long = option.get_long().map(|name| format!("--{name}"));
        long.into_iter().chain(option.get_short().map(|letter| format!("-{letter}"))).collect::<Vec<_>>()
    };
    verb.get_arguments().flat_map(of)
}
