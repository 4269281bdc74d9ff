//! Suggestions for invalid command lines.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use typelift::findings::shell_word;
use typelift::ops::Release;

use crate::failure::Failure;

/// Commands of other programs, each with the command here, or advice.
const VERBS: &[(&str, &str)] = &[
    ("align", "convert"),
    ("analyze", "stats"),
    ("benchmark", RUN),
    ("benchmark_app", RUN),
    ("bisect", "reduce"),
    ("cast", "convert --types FROM=TO"),
    ("cat", "show"),
    ("cleanup", "rewrite --use all"),
    ("compare", "diff"),
    ("compress", "convert --compress f16"),
    ("compress_weights", "convert --quantize int4_sym"),
    ("convert_model", OVC),
    ("count", "stats"),
    ("cut", "rewrite -e 'cut [A] .. [B]'"),
    ("debug", "reduce"),
    ("decompress", "convert --decompress"),
    ("delete", "rewrite -e 'cut [A] .. [B]'"),
    ("dequantize", "convert --dequantize"),
    ("describe", "MODEL.xml"),
    ("diagnose", "check"),
    ("display", "show"),
    ("doctor", "check"),
    ("downgrade", "convert --target RELEASE"),
    ("draw", "view"),
    ("dump", "show"),
    ("edit", "rewrite"),
    ("errors", "check"),
    ("export", "convert"),
    ("extract", "rewrite -e 'cut [A] .. [B]'"),
    ("fix", "check --fix"),
    ("fold", "rewrite --use constant-folding"),
    ("fp16", "convert --compress f16"),
    ("freeze", "rewrite -e 'freeze NAME = VALUE'"),
    ("fuse", "rewrite --use all"),
    ("graph", "view"),
    ("grep", "show --only TYPE"),
    ("info", "MODEL.xml"),
    ("inputs", "MODEL.xml"),
    ("int4", "convert --quantize int4_sym"),
    ("int8", "convert --quantize int8_sym"),
    ("insert", "rewrite -e 'after NAME : Relu(_)'"),
    ("inspect", "MODEL.xml"),
    ("isolate", "rewrite -e 'cut [A] .. [B]'"),
    ("layers", "show"),
    ("layout", "convert --input-layout NAME=NHWC"),
    ("lint", "check"),
    ("list", "show"),
    ("lower", "convert"),
    ("ls", "show"),
    ("merge", "rewrite -e 'join OTHER.xml'"),
    ("metadata", "show --info"),
    ("minimize", "reduce"),
    ("mo", OVC),
    ("netron", "view"),
    ("nodes", "show"),
    ("open", "view"),
    ("optimize", "rewrite --use all"),
    ("outputs", "MODEL.xml"),
    ("ovc", OVC),
    ("plot", "view"),
    ("predict", RUN),
    ("print", "show"),
    ("prune", "rewrite -e 'cut [A] .. [B]'"),
    ("quantize", "convert --quantize int8_sym"),
    ("rename", "rewrite -e 'rename OLD NEW'"),
    ("repair", "check --fix"),
    ("replace", "rewrite"),
    ("reshape", "convert --set-shape NAME=SHAPE"),
    ("run", RUN),
    ("sanitize", "rewrite --use all"),
    ("save", "convert"),
    ("search", "show --only TYPE"),
    ("serve", RUN),
    ("shapes", "infer"),
    ("simplify", "rewrite --use all"),
    ("sort", "convert --canonical"),
    ("strip", "convert --strip-weights zero"),
    ("summary", "MODEL.xml"),
    ("surgeon", "rewrite"),
    ("test", "verify"),
    ("trace", "why"),
    ("transform", "rewrite"),
    ("tree", "show"),
    ("types", "infer"),
    ("upgrade", "convert"),
    ("use", "rewrite --use NAME"),
    ("validate", "check"),
    ("version", "--version"),
    ("visualize", "view"),
    ("weights", "stats"),
];

/// Advice for commands that Typelift does not have.
const RUN: &str = "Typelift does not run models: `typelift verify A.xml B.xml` compares two with an installed OpenVINO";
const OVC: &str = "`ovc` of OpenVINO converts other formats to IR, which Typelift reads";

/// Options of other programs, each with the option here.
const OPTIONS: &[(&str, &str)] = &[
    ("--abs", "--atol"),
    ("--add-outputs", "--statement 'add output TENSOR'"),
    ("--backup_mode", "--backup"),
    ("--batch", "--set-shape NAME=SHAPE"),
    ("--bf16", "--compress bf16"),
    ("--cleanup", "--use all"),
    ("--compress-to-fp16", "--compress f16"),
    ("--compress_to_fp16", "--compress f16"),
    ("--convert-to-fp16", "--compress f16"),
    ("--data-type", "--compress f16"),
    ("--data_type", "--compress f16"),
    ("--device", "--for DEVICE"),
    ("--disable", "--allow"),
    ("--dot", "--format dot"),
    ("--dtype", "--types FROM=TO"),
    ("--dynamic", "--set-shape NAME=SHAPE"),
    ("--e", "--statement"),
    ("--errors-only", "--quiet"),
    ("--exclude", "--allow"),
    ("--exclude", "--keep"),
    ("--filter", "--only"),
    ("--fmt", "--format"),
    ("--force", "--in-place"),
    ("--fp16", "--compress f16"),
    ("--framework", "--rules"),
    ("--github", "--format github"),
    ("--golden", "--expect"),
    ("--graph", "--format dot"),
    ("--half", "--compress f16"),
    ("--ignore", "--allow"),
    ("--ignore", "--keep"),
    ("--ignored", "--keep"),
    ("--ignored-scope", "--keep"),
    ("--ignored_scope", "--keep"),
    ("--inplace", "--in-place"),
    ("--input", "--set-shape NAME=SHAPE"),
    ("--input-shape", "--set-shape NAME=SHAPE"),
    ("--input_shape", "--set-shape NAME=SHAPE"),
    ("--inputs", "--set-shape NAME=SHAPE"),
    ("--int4", "--quantize int4_sym"),
    ("--int8", "--quantize int8_sym"),
    ("--ir_version", "--target RELEASE"),
    ("--json", "--format json"),
    ("--layer", "--around"),
    ("--layout", "--input-layout NAME=NHWC"),
    ("--max_relative", "--rtol"),
    ("--level", "--quiet"),
    ("--mean_values", "--statement 'before NAME : Subtract(_, MEAN)'"),
    ("--mode", "--quantize MODE"),
    ("--name", "--around"),
    ("--no-color", "--color never"),
    ("--node", "--around"),
    ("--op-type", "--only"),
    ("--op_type", "--only"),
    ("--opset", "--target RELEASE"),
    ("--optimize", "--use all"),
    ("--out", "--output"),
    ("--output-dir", "--output"),
    ("--output-format", "--format"),
    ("--output_dir", "--output"),
    ("--output_folder", "--output"),
    ("--output_model", "--output"),
    ("--outputs", "--statement 'cut .. [NAME]'"),
    ("--overwrite", "--in-place"),
    ("--pass", "--use"),
    ("--pattern", "--statement"),
    ("--precision", "--compress f16"),
    ("--precision", "--for"),
    ("--reference", "--expect"),
    ("--rel", "--rtol"),
    ("--release", "--target"),
    ("--replace", "--statement 'OLD(x) => NEW(x)'"),
    ("--reshape", "--set-shape NAME=SHAPE"),
    ("--rule", "--statement"),
    ("--sarif", "--format sarif"),
    ("--save", "--output"),
    ("--scale_values", "--statement 'before NAME : Divide(_, SCALE)'"),
    ("--severity", "--quiet"),
    ("--shape", "--set-shape NAME=SHAPE"),
    ("--simplify", "--use all"),
    ("--skip", "--allow"),
    ("--skip", "--keep"),
    ("--source_layout", "--input-layout NAME=NCHW:NHWC"),
    ("--static", "--set-shape NAME=SHAPE"),
    ("--strict", "--deny warnings"),
    ("--target_layout", "--input-layout NAME=NCHW:NHWC"),
    ("--threads", "--jobs"),
    ("--threshold", "--rtol"),
    ("--to", "--types FROM=TO"),
    ("--tol", "--rtol"),
    ("--tolerance", "--rtol"),
    ("--top", "--all"),
    ("--type", "--types FROM=TO"),
    ("--type", "--only"),
    ("--val", "--verify"),
    ("--validate", "--verify"),
    ("--verbose", "--all"),
    ("--weight-format", "--quantize MODE"),
    ("--weight_format", "--quantize MODE"),
    ("--weights", "--bin"),
    ("--werror", "--deny warnings"),
    ("-O", "--output"),
    ("-W", "--deny warnings"),
    ("-f", "--rules FILE"),
    ("-i", "--in-place"),
    ("-p", "--write-plan FILE"),
];

const COUNTED: &str = "the file says what is computed in f32: `typelift stats` counts it";

/// Options that other programs have for the model, which is given without one.
const MODEL: &[&str] = &["--model", "--input_model", "--input-model", "--ir", "--xml", "--onnx", "-m"];

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
    ("--deny", "all", "--deny warnings"),
    ("--deny", "error", "errors end with status 1 without --deny"),
    ("--for", "int8", "`typelift convert --quantize int8_sym` quantizes, and `typelift verify` compares the results"),
    ("[CODE]", "e0", "`typelift explain` lists the codes"),
    ("--for", "f32", COUNTED),
    ("--for", "float", COUNTED),
    ("--quantize", "w4", "--quantize int4_sym"),
    ("--quantize", "awq", DATA),
    ("--quantize", "gptq", DATA),
    (
        "--quantize",
        "w8a8",
        "activations are quantized with data, as by `nncf.quantize`; --quantize stores weights only",
    ),
    ("--quantize", "w8", "--quantize int8_sym"),
    ("--target", "latest", "without --target, a model is written for the newest release"),
    ("--weights", "*.bin", "--bin FILE"),
];

const DATA: &str = "a mode that needs data is of `nncf.compress_weights`; --quantize computes from the weights alone";

/// Further words after the options, which a command does not take: the command, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("show", "to select layers, write `--only TYPE` or `--around LAYER`"),
    ("stats", "`typelift show --around LAYER` shows one layer"),
];

/// Commands whose arguments are often left out, each with a complete command line.
const EXAMPLES: &[(&str, &str)] = &[
    ("completions", "typelift completions bash"),
    ("diff", "typelift diff BEFORE.xml AFTER.xml"),
    ("reduce", "typelift reduce --finding type-mismatch MODEL.xml -o SMALL.xml"),
    ("verify", "typelift verify BEFORE.xml AFTER.xml"),
    ("view", "typelift view MODEL.xml"),
    ("why", "typelift why MODEL.xml LAYER"),
];

const EXPORT: &str =
    "convert it to OpenVINO IR first, with `openvino.convert_model` or optimum-cli: typelift reads .xml with .bin";

/// Files that are given in place of a model: their ending, and the advice.
const FILES: &[(&str, &str)] = &[
    (".bin", "`FILE` holds weights: give the .xml next to it"),
    (".onnx", "`ovc FILE` converts it to OpenVINO IR, which typelift reads"),
    (".pt", EXPORT),
    (".pth", EXPORT),
    (".pt2", EXPORT),
    (".safetensors", EXPORT),
    (".gguf", EXPORT),
    (".h5", EXPORT),
    (".keras", EXPORT),
    (".engine", EXPORT),
    (".blob", "a compiled model holds no graph: give the .xml that it was compiled from"),
    (".pb", "`ovc FILE` converts it to OpenVINO IR, which typelift reads"),
    (".tflite", "`ovc FILE` converts it to OpenVINO IR, which typelift reads"),
    (".pdmodel", "`ovc FILE` converts it to OpenVINO IR, which typelift reads"),
];

/// The most options that a suggestion lists.
const FEW: usize = 8;

/// True if the arguments are a model without a command, which asks for an overview.
pub(crate) fn is_overview(arguments: &[OsString]) -> bool {
    let is_model = |path: &Path| path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml"));
    arguments.get(1).is_some_and(|first| is_model(Path::new(first)))
}

/// Formats a usage error like every other error, with a suggestion.
pub(crate) fn failure(error: &Error, program: &mut Command, arguments: &[OsString]) -> Failure {
    program.build();
    let rendered = error.render().to_string();
    let said = rendered.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let said = said.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = match error.kind() {
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand | ErrorKind::MissingSubcommand => {
            "there is no command".to_owned()
        }
        ErrorKind::InvalidSubcommand => {
            format!("`{}` is not a command", text(error, ContextKind::InvalidSubcommand).unwrap_or_default())
        }
        ErrorKind::MissingRequiredArgument => {
            said.replace("the following required arguments were not provided:", "missing:")
        }
        _ => with_backticks(&said),
    };
    let other = || match verb_of(program, arguments) {
        Some(verb) => format!("`typelift {} -h` lists the options", verb.get_name()),
        None => "`typelift -h` lists the commands".to_owned(),
    };
    let tip = tip(error, program, arguments).or_else(|| suggested(error)).unwrap_or_else(other);
    Failure::new(message).help(tip)
}

/// Replaces the quotes around words: `'x'` becomes `` `x` ``.
fn with_backticks(said: &str) -> String {
    let quotes: Vec<usize> = said.match_indices('\'').map(|(at, _)| at).collect();
    if quotes.len().is_multiple_of(2) { said.replace('\'', "`") } else { said.to_owned() }
}

fn suggested(error: &Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(name) => Some(format!("did you mean `{name}`?")),
        ContextValue::Strings(names) => names.first().map(|name| format!("did you mean `{name}`?")),
        _ => None,
    })
}

fn tip(error: &Error, program: &Command, arguments: &[OsString]) -> Option<String> {
    match error.kind() {
        ErrorKind::InvalidSubcommand => verb_tip(&text(error, ContextKind::InvalidSubcommand)?, program),
        ErrorKind::UnknownArgument => {
            let option = text(error, ContextKind::InvalidArg)?;
            option_tip(&option, program, arguments, error.get(ContextKind::SuggestedArg).is_some())
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let (option, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
            value_tip(option.split(' ').next()?, &value.to_lowercase(), error)
        }
        ErrorKind::MissingRequiredArgument => {
            Some(format!("for example, `{}`", example(verb_of(program, arguments)?.get_name())?))
        }
        _ => None,
    }
}

fn value_tip(option: &str, value: &str, error: &Error) -> Option<String> {
    let is_like = |text: &str| match text.strip_prefix('*') {
        Some(end) => value.ends_with(end),
        None => value.starts_with(text),
    };
    if let Some((.., meant)) = VALUES.iter().find(|(name, text, _)| option == *name && is_like(text)) {
        return Some(if meant.starts_with("--") { format!("write `{meant}`") } else { (*meant).to_owned() });
    }
    let releases = Release::all().map(|release| release.to_string());
    if let ("--target", Some(last)) = (option, releases.filter(|it| it.starts_with(&format!("{value}."))).last()) {
        return Some(format!("write `--target {last}`"));
    }
    let Some(ContextValue::Strings(known)) = error.get(ContextKind::ValidValue) else { return None };
    let longer = known.iter().filter(|name| value.len() > 2 && name.contains(value)).take(3);
    let longer: Vec<_> = longer.map(|name| format!("`{name}`")).collect();
    (!longer.is_empty()).then(|| format!("did you mean {}?", longer.join(" or ")))
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        _ => None,
    }
}

pub(crate) fn other_file(path: &str) -> Option<String> {
    let lower = path.to_ascii_lowercase();
    let (_, advice) = FILES.iter().find(|(ending, _)| lower.ends_with(ending))?;
    Some(advice.replace("FILE", &shell_word(path)))
}

fn verb_tip(word: &str, program: &Command) -> Option<String> {
    if let Some((_, verb)) = VERBS.iter().find(|(name, _)| name.eq_ignore_ascii_case(word)) {
        let is_advice = [RUN, OVC].contains(verb);
        return Some(if is_advice { (*verb).to_owned() } else { format!("`typelift {verb}` does that") });
    }
    if let Some(advice) = other_file(word) {
        return Some(advice);
    }
    if Path::new(word).is_dir() {
        return Some(format!("`typelift check {}` checks all models in it", shell_word(word)));
    }
    for other in [format!("{word}.xml"), Path::new(word).with_extension("xml").display().to_string()] {
        if Path::new(&other).is_file() {
            return Some(format!("did you mean `typelift {}`?", shell_word(&other)));
        }
    }
    let names = program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    typelift::near(word, names).map(|name| format!("did you mean `{name}`?"))
}

fn option_tip(option: &str, program: &Command, arguments: &[OsString], is_guessed: bool) -> Option<String> {
    let Some(verb) = verb_of(program, arguments) else {
        let with_option = |verb: &&Command| spellings(verb).any(|known| option.split('=').next() == Some(&known));
        return match program.get_subcommands().find(with_option) {
            Some(verb) => Some(format!("`{option}` is an option of `typelift {}`", verb.get_name())),
            None if option.starts_with('-') => None,
            None => Some("to compare two models, write `typelift diff A.xml B.xml`".to_owned()),
        };
    };
    if !option.starts_with('-') {
        let tip = WORDS.iter().find(|(name, _)| *name == verb.get_name()).map(|(_, tip)| (*tip).to_owned());
        return Some(tip.unwrap_or_else(|| format!("`typelift help {}` explains the command", verb.get_name())));
    }
    let name = option.split('=').next().unwrap_or(option);
    let has = |verb: &Command, option: &str| spellings(verb).any(|known| option.split(' ').next() == Some(&known));
    if let Some((_, meant)) = OPTIONS.iter().find(|(other, meant)| *other == name && has(verb, meant)) {
        return Some(format!("write `{}`", with_device(meant, name, arguments)));
    }
    if MODEL.contains(&name) {
        let example =
            example(verb.get_name()).map_or_else(|| format!("typelift {} MODEL.xml", verb.get_name()), str::to_owned);
        return Some(format!("give the model without `{name}`: `{example}`"));
    }
    let dashed = name.replace('_', "-");
    if dashed != name && has(verb, &dashed) {
        return Some(format!("write `{dashed}`"));
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

/// Replaces `DEVICE` by the device that was given with an option of another program.
fn with_device(meant: &str, name: &str, arguments: &[OsString]) -> String {
    let mut words = arguments.iter().filter_map(|word| word.to_str()).flat_map(|word| word.split('='));
    let device = words.by_ref().skip_while(|word| *word != name).nth(1).map(str::to_lowercase);
    let device = device.filter(|device| ["cpu", "gpu", "npu"].contains(&&**device));
    meant.replace("DEVICE", device.as_deref().unwrap_or("cpu"))
}

fn example(verb: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(name, _)| *name == verb).map(|(_, line)| *line)
}

fn verb_of<'p>(program: &'p Command, arguments: &[OsString]) -> Option<&'p Command> {
    arguments.iter().skip(1).find_map(|word| program.find_subcommand(word))
}

/// Iterates over all spellings of a command's options.
fn spellings(verb: &Command) -> impl Iterator<Item = String> + '_ {
    let of = |option: &Arg| {
        let long = option.get_long().map(|name| format!("--{name}"));
        long.into_iter().chain(option.get_short().map(|letter| format!("-{letter}"))).collect::<Vec<_>>()
    };
    verb.get_arguments().flat_map(of)
}
