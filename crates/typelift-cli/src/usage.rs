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
    ("cast", "convert --types FROM=TO"),
    ("cat", "show"),
    ("compare", "diff"),
    ("compress", "convert --compress f16"),
    ("count", "stats"),
    ("cut", "rewrite -e 'cut [A] .. [B]'"),
    ("decompress", "convert --decompress"),
    ("dequantize", "convert --dequantize"),
    ("describe", "MODEL.xml"),
    ("display", "show"),
    ("downgrade", "convert --target RELEASE"),
    ("draw", "view"),
    ("dump", "show"),
    ("errors", "check"),
    ("export", "convert"),
    ("fix", "check --fix"),
    ("fp16", "convert --compress f16"),
    ("fuse", "rewrite --use all"),
    ("graph", "view"),
    ("grep", "show --only TYPE"),
    ("info", "MODEL.xml"),
    ("inspect", "MODEL.xml"),
    ("lint", "check"),
    ("list", "show"),
    ("ls", "show"),
    ("merge", "rewrite -e 'join OTHER.xml'"),
    ("minimize", "reduce"),
    ("optimize", "rewrite --use all"),
    ("plot", "view"),
    ("print", "show"),
    ("quantize", "convert --quantize int8_sym"),
    ("rename", "rewrite -e 'rename OLD NEW'"),
    ("repair", "check --fix"),
    ("replace", "rewrite"),
    ("reshape", "convert --set-shape NAME=SHAPE"),
    ("run", "verify"),
    ("save", "convert"),
    ("shapes", "infer"),
    ("simplify", "rewrite --use all"),
    ("strip", "convert --strip-weights zero"),
    ("summary", "MODEL.xml"),
    ("test", "verify"),
    ("trace", "why"),
    ("transform", "rewrite"),
    ("types", "infer"),
    ("upgrade", "convert"),
    ("validate", "check"),
    ("version", "--version"),
    ("visualize", "view"),
];

/// Options of other programs, each with the option here.
const OPTIONS: &[(&str, &str)] = &[
    ("--batch", "--set-shape NAME=SHAPE"),
    ("--bf16", "--compress bf16"),
    ("--compress_to_fp16", "--compress f16"),
    ("--data_type", "--compress f16"),
    ("--disable", "--allow"),
    ("--dtype", "--types FROM=TO"),
    ("--exclude", "--allow"),
    ("--filter", "--only"),
    ("--fmt", "--format"),
    ("--force", "--in-place"),
    ("--fp16", "--compress f16"),
    ("--framework", "--rules"),
    ("--github", "--format github"),
    ("--half", "--compress f16"),
    ("--ignore", "--allow"),
    ("--inplace", "--in-place"),
    ("--input-shape", "--set-shape NAME=SHAPE"),
    ("--input_shape", "--set-shape NAME=SHAPE"),
    ("--int4", "--quantize int4_sym"),
    ("--int8", "--quantize int8_sym"),
    ("--ir_version", "--target RELEASE"),
    ("--json", "--format json"),
    ("--layer", "--around"),
    ("--layout", "--statement 'layout NAME = [N,C,H,W]'"),
    ("--opset", "--target RELEASE"),
    ("--out", "--output"),
    ("--output-format", "--format"),
    ("--output_dir", "--output"),
    ("--output_model", "--output"),
    ("--overwrite", "--in-place"),
    ("--pass", "--use"),
    ("--pattern", "--statement"),
    ("--precision", "--for"),
    ("--release", "--target"),
    ("--rule", "--statement"),
    ("--sarif", "--format sarif"),
    ("--shape", "--set-shape NAME=SHAPE"),
    ("--strict", "--deny warnings"),
    ("--threads", "--jobs"),
    ("--to", "--types FROM=TO"),
    ("--type", "--only"),
    ("--verbose", "--all"),
    ("--weights", "--bin"),
    ("--werror", "--deny warnings"),
    ("-W", "--deny warnings"),
    ("-f", "--format"),
    ("-i", "--in-place"),
];

/// Values that are meant for another option: the option, the beginning of the value, and the option to write or the
/// advice.
const VALUES: &[(&str, &str, &str)] = &[
    ("--compress", "int8", "--quantize int8_sym"),
    ("--compress", "int4", "--quantize int4_sym"),
    ("--compress", "i8", "--quantize int8_sym"),
    ("--compress", "u8", "--quantize int8_asym"),
    ("--quantize", "int8", "--quantize int8_sym"),
    ("--quantize", "int4", "--quantize int4_sym"),
    ("--quantize", "f16", "--compress f16"),
    ("--quantize", "fp16", "--compress f16"),
    ("--deny", "error", "errors end with status 1 without --deny"),
    ("--for", "int8", "`typelift convert --quantize int8_sym` quantizes, and `typelift verify` compares the results"),
    ("[CODE]", "E", "`typelift explain` lists the codes"),
    ("--for", "CPU", "--for cpu"),
    ("--for", "GPU", "--for gpu"),
    ("--for", "NPU", "--for npu"),
];

/// Files that are given in place of a model: their ending, and the advice.
const FILES: &[(&str, &str)] = &[
    (".bin", "`FILE` holds weights: give the .xml next to it"),
    (".onnx", "`ovc FILE` converts it to OpenVINO IR, which typelift reads"),
    (".pt", "export the model to OpenVINO IR first: typelift reads .xml with .bin"),
    (".pb", "`ovc FILE` converts it to OpenVINO IR, which typelift reads"),
    (".tflite", "`ovc FILE` converts it to OpenVINO IR, which typelift reads"),
    (".pdmodel", "`ovc FILE` converts it to OpenVINO IR, which typelift reads"),
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
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => text(&error, ContextKind::InvalidArg)
            .zip(text(&error, ContextKind::InvalidValue))
            .and_then(|(option, value)| {
                let is_meant = |(name, start, _): &&(&str, &str, &str)| {
                    option.split(' ').next() == Some(*name) && value.starts_with(start)
                };
                VALUES.iter().find(is_meant).map(|(.., meant)| match meant.starts_with("--") {
                    true => format!("write `{meant}`"),
                    false => (*meant).to_owned(),
                })
            }),
        _ => None,
    };
    if let Some(tip) = tip {
        error.remove(ContextKind::SuggestedSubcommand);
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::SuggestedValue);
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
    if let Some((_, tip)) = FILES.iter().find(|(ending, _)| word.to_ascii_lowercase().ends_with(ending)) {
        return Some(tip.replace("FILE", word));
    }
    let with_ending = format!("{word}.xml");
    if Path::new(&with_ending).is_file() {
        return Some(format!("did you mean `typelift {with_ending}`?"));
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
    let elsewhere = || {
        let (_, meant) = OPTIONS.iter().find(|(other, _)| *other == name)?;
        let other = program.get_subcommands().find(|other| !other.is_hide_set() && has(other, meant))?;
        Some(format!("`typelift {} {meant}` does that", other.get_name()))
    };
    if is_guessed {
        return None;
    }
    let others: Vec<_> = program.get_subcommands().filter(|other| !other.is_hide_set() && has(other, name)).collect();
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(|other| other.get_name()).collect();
        return Some(format!("`{name}` is an option of {}", names.join(", ")));
    }
    if let Some(tip) = elsewhere() {
        return Some(tip);
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
