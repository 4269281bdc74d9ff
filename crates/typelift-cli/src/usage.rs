//! Suggestions for invalid command lines.

use std::ffi::OsString;
use std::path::Path;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use typelift::findings::shell_word;

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
    ("use", "rewrite --use NAME"),
    ("validate", "check"),
    ("version", "--version"),
    ("visualize", "view"),
];

/// Options of other programs, each with the option here.
const OPTIONS: &[(&str, &str)] = &[
    ("--add-outputs", "--statement 'add output TENSOR'"),
    ("--batch", "--set-shape NAME=SHAPE"),
    ("--bf16", "--compress bf16"),
    ("--compress_to_fp16", "--compress f16"),
    ("--data_type", "--compress f16"),
    ("--device", "--for cpu"),
    ("--disable", "--allow"),
    ("--dot", "--format dot"),
    ("--dtype", "--types FROM=TO"),
    ("--dynamic", "--set-shape NAME=SHAPE"),
    ("--errors-only", "--quiet"),
    ("--exclude", "--allow"),
    ("--exclude", "--keep"),
    ("--filter", "--only"),
    ("--fmt", "--format"),
    ("--force", "--in-place"),
    ("--fp16", "--compress f16"),
    ("--framework", "--rules"),
    ("--github", "--format github"),
    ("--graph", "--format dot"),
    ("--half", "--compress f16"),
    ("--ignore", "--allow"),
    ("--ignore", "--keep"),
    ("--ignored_scope", "--keep"),
    ("--inplace", "--in-place"),
    ("--input", "--set-shape NAME=SHAPE"),
    ("--input-shape", "--set-shape NAME=SHAPE"),
    ("--input_shape", "--set-shape NAME=SHAPE"),
    ("--int4", "--quantize int4_sym"),
    ("--int8", "--quantize int8_sym"),
    ("--ir_version", "--target RELEASE"),
    ("--json", "--format json"),
    ("--layer", "--around"),
    ("--layout", "--statement 'layout NAME = [N,C,H,W]'"),
    ("--mean_values", "--statement 'before NAME : Subtract(_, MEAN)'"),
    ("--opset", "--target RELEASE"),
    ("--out", "--output"),
    ("--no-color", "--color never"),
    ("--output-format", "--format"),
    ("--output_dir", "--output"),
    ("--output_model", "--output"),
    ("--overwrite", "--in-place"),
    ("--pass", "--use"),
    ("--pattern", "--statement"),
    ("--precision", "--for"),
    ("--precision", "--compress f16"),
    ("--release", "--target"),
    ("--reshape", "--set-shape NAME=SHAPE"),
    ("--rule", "--statement"),
    ("--sarif", "--format sarif"),
    ("--scale_values", "--statement 'before NAME : Divide(_, SCALE)'"),
    ("--shape", "--set-shape NAME=SHAPE"),
    ("--skip", "--allow"),
    ("--skip", "--keep"),
    ("--static", "--set-shape NAME=SHAPE"),
    ("--strict", "--deny warnings"),
    ("--threads", "--jobs"),
    ("--to", "--types FROM=TO"),
    ("--tolerance", "--rtol"),
    ("--tol", "--rtol"),
    ("--top", "--all"),
    ("--type", "--only"),
    ("--verbose", "--all"),
    ("--weights", "--bin"),
    ("--werror", "--deny warnings"),
    ("-W", "--deny warnings"),
    ("-O", "--output"),
    ("-f", "--rules FILE"),
    ("-i", "--in-place"),
    ("-p", "--write-plan FILE"),
];

/// Values that are meant for another option: the option, the beginning of the value or `*` and its end, and the option
/// to write or the advice.
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
    ("[CODE]", "e0", "`typelift explain` lists the codes"),
    ("--for", "f32", "the file says what is computed in f32: `typelift stats` counts it"),
    ("--for", "float", "the file says what is computed in f32: `typelift stats` counts it"),
    ("--quantize", "w4", "--quantize int4_sym"),
    (
        "--quantize",
        "w8a8",
        "activations are quantized with data, as by `nncf.quantize`; --quantize stores weights only",
    ),
    ("--quantize", "w8", "--quantize int8_sym"),
    ("--target", "latest", "without --target, a model is written for the newest release"),
    ("--weights", "*.bin", "--bin FILE"),
];

/// Further words after the options, which a command does not take: the command, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    (OVERVIEW, "to compare two models, write `typelift diff A.xml B.xml`"),
    ("show", "to select layers, write `--only TYPE` or `--around LAYER`"),
    ("stats", "`typelift show --around LAYER` shows one layer"),
];

/// Commands whose arguments are often left out, each with a complete command line.
const EXAMPLES: &[(&str, &str)] = &[
    ("completions", "typelift completions bash"),
    ("diff", "typelift diff BEFORE.xml AFTER.xml"),
    ("reduce", "typelift reduce --finding type-mismatch MODEL.xml -o SMALL.xml"),
    ("verify", "typelift verify BEFORE.xml AFTER.xml"),
    ("view", "typelift view MODEL.xml -o MODEL.html"),
    ("why", "typelift why MODEL.xml LAYER"),
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

/// The most options that a suggestion lists.
const FEW: usize = 8;

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
                let value = value.to_lowercase();
                let is_like = |text: &str| match text.strip_prefix('*') {
                    Some(end) => value.ends_with(end),
                    None => value.starts_with(text),
                };
                let is_meant =
                    |(name, text, _): &&(&str, &str, &str)| option.split(' ').next() == Some(*name) && is_like(text);
                VALUES.iter().find(is_meant).map(|(.., meant)| match meant.starts_with("--") {
                    true => format!("write `{meant}`"),
                    false => (*meant).to_owned(),
                })
            }),
        ErrorKind::MissingRequiredArgument => text(&error, ContextKind::Usage)
            .and_then(|usage| Some(format!("for example, `{}`", example(used(&usage)?)?))),
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
        return Some(tip.replace("FILE", &shell_word(word)));
    }
    if Path::new(word).is_dir() {
        return Some(format!("`typelift check {}` checks all models in it", shell_word(word)));
    }
    let with_ending = format!("{word}.xml");
    if Path::new(&with_ending).is_file() {
        return Some(format!("did you mean `typelift {}`?", shell_word(&with_ending)));
    }
    let names = program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    typelift::near(word, names).map(|name| format!("did you mean `{name}`?"))
}

/// Returns a replacement for an option that the command of a usage line does not have.
fn option_tip(option: &str, usage: &str, program: &Command, is_guessed: bool) -> Option<String> {
    let verb = program.get_subcommands().find(|verb| used(usage) == Some(verb.get_name()))?;
    if !option.starts_with('-') {
        let tip = WORDS.iter().find(|(name, _)| *name == verb.get_name()).map(|(_, tip)| (*tip).to_owned());
        return Some(tip.unwrap_or_else(|| format!("`typelift help {}` explains the command", verb.get_name())));
    }
    let name = option.split('=').next().unwrap_or(option);
    let has = |verb: &Command, option: &str| spellings(verb).any(|known| option.split(' ').next() == Some(&known));
    if let Some((_, meant)) = OPTIONS.iter().find(|(other, meant)| *other == name && has(verb, meant)) {
        return Some(format!("write `{meant}`"));
    }
    let elsewhere = || {
        // The same letter means other things elsewhere.
        let (_, meant) = OPTIONS.iter().find(|(other, _)| *other == name && other.starts_with("--"))?;
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
    let takes = name.trim_start_matches('-').to_uppercase();
    let values = verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
    if values.filter(|value| !takes.is_empty() && value.split('_').any(|word| word == takes)).count() > 0 {
        return Some(format!("give it without `{name}`: `{}`", example(verb.get_name())?));
    }
    if let Some(tip) = elsewhere() {
        return Some(tip);
    }
    let own = verb.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
    let own = own.filter_map(Arg::get_long).filter(|name| *name != "help");
    let own: Vec<_> = own.map(|name| format!("--{name}")).collect();
    Some(match own.len() {
        1..=FEW => format!("the options of `typelift {}` are {}", verb.get_name(), own.join(", ")),
        _ => format!("`typelift {} -h` lists the options", verb.get_name()),
    })
}

/// Returns a complete command line for a command whose arguments are often left out.
fn example(verb: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(name, _)| *name == verb).map(|(_, line)| *line)
}

/// Returns the command of a usage line.
fn used(usage: &str) -> Option<&str> {
    usage.split_once("typelift ")?.1.split_whitespace().next()
}

/// Iterates over all spellings of a command's options.
fn spellings(verb: &Command) -> impl Iterator<Item = String> + '_ {
    let of = |option: &Arg| {
        let long = option.get_long().map(|name| format!("--{name}"));
        long.into_iter().chain(option.get_short().map(|letter| format!("-{letter}"))).collect::<Vec<_>>()
    };
    verb.get_arguments().flat_map(of)
}
