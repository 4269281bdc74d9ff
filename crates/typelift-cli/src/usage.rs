//! Suggestions for invalid command lines.

use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use typelift::findings::shell_word;
use typelift::ops::Release;
use typelift::rewrite::library;

use crate::failure::Failure;

/// Commands here, or advice, each with the commands of other programs that mean the same.
const VERBS: &[(&str, &[&str])] = &[
    ("MODEL.xml", &["describe", "info", "inputs", "inspect", "outputs", "summary"]),
    ("check", &["diagnose", "doctor", "errors", "lint", "status", "validate"]),
    ("convert", &["align", "export", "lower", "save", "upgrade"]),
    ("convert --canonical", &["sort"]),
    ("convert --compress f16", &["compress", "fp16"]),
    ("convert --decompress", &["decompress"]),
    ("convert --dequantize", &["dequantize"]),
    ("convert --input-layout NAME=NCHW:NHWC", &["layout"]),
    ("convert --quantize int4_sym", &["compress_weights", "int4"]),
    ("convert --quantize int8_sym", &["int8", "quantize"]),
    ("convert --set-shape NAME=SHAPE", &["reshape"]),
    ("convert --strip-weights zero", &["strip"]),
    ("convert --target RELEASE", &["downgrade"]),
    ("convert --types FROM=TO", &["cast"]),
    ("diff", &["compare"]),
    ("infer", &["shapes", "types"]),
    ("reduce", &["bisect", "debug", "minimize"]),
    ("rewrite", &["edit", "replace", "surgeon", "transform"]),
    ("rewrite --list-rules", &["list-rules", "rules"]),
    ("rewrite --use NAME", &["use"]),
    ("rewrite --use all", &["cleanup", "fuse", "optimize", "sanitize", "simplify"]),
    ("rewrite --use constant-folding", &["fold"]),
    ("rewrite -e 'after NAME : Relu(_)'", &["insert"]),
    ("rewrite -e 'cut [A] .. [B]'", &["cut", "delete", "extract", "isolate", "prune"]),
    ("rewrite -e 'freeze NAME = VALUE'", &["freeze"]),
    ("rewrite -e 'join OTHER.xml'", &["merge"]),
    ("rewrite -e 'rename OLD NEW'", &["rename"]),
    ("show", &["cat", "display", "dump", "layers", "list", "ls", "nodes", "print", "tree"]),
    ("show --info", &["metadata"]),
    ("show --only TYPE", &["grep", "search"]),
    ("stats", &["analyze", "count", "weights"]),
    ("verify", &["test"]),
    ("view", &["draw", "graph", "netron", "open", "plot", "visualize"]),
    ("why", &["trace"]),
    ("--version", &["version"]),
    (FIX, &["fix", "repair"]),
    (RUN, &["benchmark", "benchmark_app", "predict", "run", "serve"]),
    (OVC, &["convert_model", "mo", "ovc"]),
];

/// Advice for commands that Typelift does not have.
const FIX: &str = "`typelift convert` inserts Converts, and `typelift check --fix` corrects the text of the file";
const RUN: &str = "Typelift does not run models: `typelift verify A.xml B.xml` compares two with an installed OpenVINO";
const OVC: &str = "`ovc` of OpenVINO converts other formats to IR, which Typelift reads";

/// Options here, each with the options of other programs that mean the same. A `_` in a name is written as `-`. The
/// first row counts whose option the command has.
const OPTIONS: &[(&str, &[&str])] = &[
    ("--all", &["--top", "--verbose"]),
    ("--allow", &["--disable", "--exclude", "--ignore", "--skip"]),
    ("--around", &["--layer", "--name", "--node"]),
    ("--atol", &["--abs"]),
    ("--backup", &["--backup-mode"]),
    ("--bin", &["--weights"]),
    ("--color never", &["--no-color"]),
    ("--compress", &["-c"]),
    ("--compress bf16", &["--bf16"]),
    ("--compress f16", &["--compress-to-fp16", "--convert-to-fp16", "--data-type", "--fp16", "--half", "--precision"]),
    ("--deny warnings", &["--strict", "--werror", "-W"]),
    ("--dry-run", &["--dryrun", "--plan", "-n"]),
    ("--expect", &["--golden", "--reference"]),
    ("--for", &["--precision"]),
    ("--for DEVICE", &["--device"]),
    ("--format", &["--fmt", "--output-format"]),
    ("--format dot", &["--dot", "--graph"]),
    ("--format github", &["--github"]),
    ("--format json", &["--csv", "--json"]),
    ("--format sarif", &["--sarif"]),
    ("--hint f16", &["--fp16", "--precision"]),
    ("--in-place", &["--force", "--inplace", "--overwrite", "-i"]),
    ("--input-layout NAME=NCHW:NHWC", &["--layout", "--source-layout", "--target-layout"]),
    ("--jobs", &["--threads"]),
    ("--keep", &["--exclude", "--ignore", "--ignored", "--ignored-scope", "--skip"]),
    ("--output", &["--out", "--output-dir", "--output-folder", "--output-model", "--save", "-O"]),
    ("--quantize MODE", &["--mode", "--weight-format"]),
    ("--quantize int4_sym", &["--int4"]),
    ("--quantize int8_sym", &["--int8"]),
    ("--quiet", &["--errors-only", "--level", "--severity"]),
    ("--rtol", &["--max-relative", "--rel", "--threshold", "--tol", "--tolerance"]),
    ("--rules", &["--framework"]),
    ("--rules FILE", &["-f", "-r"]),
    ("--rules FILE` or `--statement STATEMENT", &["--rule"]),
    ("--set-length batch=N", &["--batch", "--batch-size", "-b"]),
    ("--set-shape 'NAME=[1..8,…]'", &["--maxshapes", "--minshapes", "--optshapes"]),
    (
        "--set-shape NAME=SHAPE",
        &["--dynamic", "--input", "--input-shape", "--inputs", "--reshape", "--shape", "--shapes", "--static"],
    ),
    ("--statement", &["--e", "--pattern"]),
    ("--statement 'OLD(x) => NEW(x)'", &["--replace"]),
    ("--statement 'add output TENSOR'", &["--add-outputs"]),
    ("--statement 'before NAME : Divide(_, reshape([R, G, B], [1, 3, 1, 1]))'", &["--scale-values"]),
    ("--statement 'before NAME : Gather(_, [2,1,0], 1)'", &["--reverse-channels", "--reverse-input-channels"]),
    ("--statement 'before NAME : Subtract(_, reshape([R, G, B], [1, 3, 1, 1]))'", &["--mean-values"]),
    ("--statement 'cut .. [NAME]'", &["--outputs"]),
    ("--statement 'rename OLD NEW'", &["--input-names", "--output-names", "--rename"]),
    ("--target", &["--release"]),
    ("--target RELEASE", &["--ir-version", "--opset"]),
    ("--types FROM=TO", &["--dtype", "--to", "--type"]),
    ("--only", &["--filter", "--find", "--grep", "--op-type", "--search", "--type"]),
    ("--use", &["--pass"]),
    ("--use all", &["--cleanup", "--optimize", "--simplify"]),
    ("--verify", &["--val", "--validate"]),
    ("--write-plan FILE", &["-p"]),
];

/// Options that other programs have for the model, which is given without one.
const MODEL: &[&str] = &["--model", "--input-model", "--ir", "--xml", "--onnx", "-m"];

/// Values that are meant for another option: the option, the beginnings of values or `*` and their end, and the option
/// to write or the advice.
const VALUES: &[(&str, &[&str], &str)] = &[
    ("--compress", &["int8", "i8"], "--quantize int8_sym"),
    ("--compress", &["int4"], "--quantize int4_sym"),
    ("--compress", &["u8"], "--quantize int8_asym"),
    ("--compress", &["f32", "fp32", "float32"], "--decompress"),
    ("--deny", &["all"], "--deny warnings"),
    ("--deny", &["error"], "errors end with status 1 without --deny"),
    (
        "--for",
        &["int8"],
        "`typelift convert --quantize int8_sym` quantizes, and `typelift verify` compares the results",
    ),
    ("--for", &["f32", "float"], "the file says what is computed in f32: `typelift stats` counts it"),
    (
        "--quantize",
        &["w8a8"],
        "activations are quantized with data, as by `nncf.quantize`; --quantize stores weights only",
    ),
    ("--quantize", &["int8", "w8"], "--quantize int8_sym"),
    ("--quantize", &["int4", "w4"], "--quantize int4_sym"),
    ("--quantize", &["f16", "fp16"], "--compress f16"),
    ("--quantize", &["*.txt"], "--quantize @FILE"),
    ("--quantize", &["awq", "gptq"], DATA),
    ("--target", &["cpu"], "--for cpu"),
    ("--target", &["gpu"], "--for gpu"),
    ("--target", &["npu"], "--for npu"),
    ("--target", &["latest"], "without --target, a model is written for the newest release"),
    ("--use", &["fuse-all"], "--use all"),
    ("--use", &["fuse-layernorm", "layernorm"], "--use norms"),
    ("--weights", &["*.bin"], "--bin FILE"),
    ("[CODE]", &["*.xml"], "`typelift check MODEL.xml` reports the findings of a model"),
    ("[CODE]", &["e0"], "`typelift explain` lists the codes"),
];

const DATA: &str = "a mode that needs data is of `nncf.compress_weights`; --quantize computes from the weights alone";

/// Further words after the options, which a command does not take: the command, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("reduce", "the command follows `--`, such as `-- python3 check.py {}`"),
    ("show", "to select layers, write `--only TYPE` or `--around LAYER`"),
    ("stats", "`typelift show --around LAYER` shows one layer"),
    ("verify", "a property is one word, such as `--config KV_CACHE_PRECISION=u8`"),
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

/// Endings of files that are given in place of a model, with the advice.
const FILES: &[(&[&str], &str)] = &[
    (&[".bin"], "`FILE` holds weights: give the .xml next to it"),
    (&[".blob", ".engine"], "a compiled model holds no graph: give the .xml that it was compiled from"),
    (&[".onnx", ".pb", ".tflite", ".pdmodel"], "`ovc FILE` converts it to OpenVINO IR, which typelift reads"),
    (
        &[".pt", ".pth", ".pt2", ".safetensors", ".gguf", ".h5", ".keras"],
        "convert it to OpenVINO IR first, with `openvino.convert_model` or optimum-cli: typelift reads .xml with .bin",
    ),
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
        _ => with_backticks(&said)
            .replace("invalid float literal", "expected a number, such as 0.01")
            .replace("invalid digit found in string", "expected a whole number"),
    };
    // The parser of a value may have found what was meant.
    let (message, meant) = match message.split_once("; did you mean ") {
        Some((message, meant)) => (message.to_owned(), Some(format!("did you mean {meant}"))),
        None => (message, None),
    };
    let other = || match verb_of(program, arguments) {
        Some(verb) => format!("`typelift {} -h` lists the options", verb.get_name()),
        None => "`typelift -h` lists the commands".to_owned(),
    };
    let tip = tip(error, program, arguments).or_else(|| suggested(error)).or(meant).unwrap_or_else(other);
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
            let name = option.split(' ').next()?;
            match value.split_once(':') {
                Some((end, given)) if option.contains("<NAME=") && !value.contains('=') => {
                    Some(format!("write `{name} {}`", shell_word(&format!("{end}={given}"))))
                }
                _ => value_tip(name, &value.to_lowercase(), error),
            }
        }
        ErrorKind::MissingRequiredArgument => {
            Some(format!("for example, `{}`", example(verb_of(program, arguments)?.get_name())?))
        }
        _ => None,
    }
}

fn value_tip(option: &str, value: &str, error: &Error) -> Option<String> {
    let is_like = |text: &&str| match text.strip_prefix('*') {
        Some(end) => value.ends_with(end),
        None => value.starts_with(*text),
    };
    if let Some((.., meant)) = VALUES.iter().find(|(name, texts, _)| option == *name && texts.iter().any(is_like)) {
        return Some(if meant.starts_with("--") { format!("write `{meant}`") } else { (*meant).to_owned() });
    }
    let words = VERBS.iter().find(|(_, names)| names.contains(&value)).and_then(|(verb, _)| verb.split_once(' '));
    if let Some((_, meant)) = words.filter(|(_, meant)| meant.split(' ').next() == Some(option)) {
        return Some(format!("write `{meant}`"));
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
    let (_, advice) = FILES.iter().find(|(endings, _)| endings.iter().any(|ending| lower.ends_with(ending)))?;
    Some(advice.replace("FILE", &shell_word(path)))
}

fn verb_tip(word: &str, program: &Command) -> Option<String> {
    let is_word = |name: &&str| name.eq_ignore_ascii_case(word);
    if let Some((verb, _)) = VERBS.iter().find(|(_, names)| names.iter().any(is_word)) {
        let is_advice = [FIX, RUN, OVC].contains(verb);
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
    if let Some(name) = typelift::near(word, names) {
        return Some(format!("did you mean `{name}`?"));
    }
    let others = VERBS.iter().flat_map(|(_, names)| names.iter().copied());
    typelift::near(word, others).and_then(|other| verb_tip(&other, program))
}

fn option_tip(option: &str, program: &Command, arguments: &[OsString], is_guessed: bool) -> Option<String> {
    let Some(verb) = verb_of(program, arguments) else {
        let with_option = |verb: &&Command| spellings(verb).any(|known| option.split('=').next() == Some(&known));
        let model = arguments.iter().filter_map(|word| word.to_str()).find(|word| word.ends_with(".xml"));
        if let Some(model) = model.filter(|_| option.starts_with("-o") || !is_overview(arguments)) {
            let model = shell_word(model);
            return Some(format!(
                "the command comes first: `typelift convert {model} -o OUT.xml`, or `typelift {model}`"
            ));
        }
        return match program.get_subcommands().find(with_option) {
            Some(verb) => Some(format!("`{option}` is an option of `typelift {}`", verb.get_name())),
            None if option.starts_with('-') => None,
            None => Some("to compare two models, write `typelift diff A.xml B.xml`".to_owned()),
        };
    };
    if let (true, Some(model)) = (is_overview(arguments) && option == verb.get_name(), arguments.get(1)) {
        return Some(format!("write `typelift {option} {}`", shell_word(&model.to_string_lossy())));
    }
    if !option.starts_with('-') {
        let tip = WORDS.iter().find(|(name, _)| *name == verb.get_name()).map(|(_, tip)| (*tip).to_owned());
        return Some(tip.unwrap_or_else(|| format!("`typelift help {}` explains the command", verb.get_name())));
    }
    let name = option.split('=').next().unwrap_or(option);
    let dashed = name.replace('_', "-");
    // `-O` is not `-o`.
    let dashed = if dashed.starts_with("--") { dashed.to_lowercase() } else { dashed };
    let has = |verb: &Command, option: &str| spellings(verb).any(|known| option.split(' ').next() == Some(&known));
    let mut meanings = OPTIONS.iter().filter(|(_, others)| others.contains(&&*dashed)).map(|(meant, _)| meant);
    let plural = format!("{dashed}s");
    if has(verb, &plural) && !meanings.clone().any(|meant| meant.starts_with(&plural)) {
        return Some(format!("write `{plural}`"));
    }
    if let Some(meant) = meanings.clone().find(|meant| has(verb, meant)) {
        let is_given = arguments.iter().any(|word| ["-o", "--output"].iter().any(|it| word == it));
        if *meant == "--in-place" && is_given {
            return Some(format!("leave `{name}` out: -o replaces a file that is there"));
        }
        return Some(format!("write `{}`", with_value(meant, name, arguments)));
    }
    if MODEL.contains(&&*dashed) {
        let example =
            example(verb.get_name()).map_or_else(|| format!("typelift {} MODEL.xml", verb.get_name()), str::to_owned);
        return Some(format!("give the model without `{name}`: `{example}`"));
    }
    if dashed != name && has(verb, &dashed) {
        return Some(format!("write `{dashed}`"));
    }
    if is_guessed && library::get(dashed.trim_start_matches('-')).is_none() {
        return None;
    }
    let others: Vec<_> = program.get_subcommands().filter(|other| !other.is_hide_set() && has(other, name)).collect();
    if !others.is_empty() {
        let names: Vec<_> = others.iter().map(|other| other.get_name()).collect();
        return Some(format!("`{name}` is an option of {}", names.join(", ")));
    }
    if let Some(set) = library::get(dashed.trim_start_matches('-')) {
        return Some(format!("`typelift rewrite --use {}` does that", set.name));
    }
    let takes = name.trim_start_matches('-').to_uppercase();
    let values = verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
    if values.filter(|value| !takes.is_empty() && value.split('_').any(|word| word == takes)).count() > 0 {
        return Some(format!("give it without `{name}`: `{}`", example(verb.get_name())?));
    }
    // The same letter means other things elsewhere.
    if let Some(meant) = meanings.next().filter(|_| name.starts_with("--"))
        && let Some(other) = program.get_subcommands().find(|other| !other.is_hide_set() && has(other, meant))
    {
        return Some(format!("`typelift {} {meant}` does that", other.get_name()));
    }
    let own = verb.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
    let own = own.filter_map(Arg::get_long).filter(|name| *name != "help");
    let own: Vec<_> = own.map(|name| format!("--{name}")).collect();
    Some(match own.len() {
        1..=FEW => format!("the options of `typelift {}` are {}", verb.get_name(), own.join(", ")),
        _ => format!("`typelift {} -h` lists the options", verb.get_name()),
    })
}

/// Fills in the device or the mode that was given with an option of another program.
fn with_value(meant: &str, name: &str, arguments: &[OsString]) -> String {
    let mut words = arguments.iter().filter_map(|word| word.to_str()).flat_map(|word| word.split('='));
    let given = words.by_ref().skip_while(|word| *word != name).nth(1).map(str::to_lowercase).unwrap_or_default();
    let value = VALUES.iter().find(|(option, texts, _)| meant.starts_with(option) && texts.contains(&&*given));
    match value {
        Some((.., value)) if meant.ends_with(" MODE") && value.starts_with("--") => (*value).to_owned(),
        _ if ["cpu", "gpu", "npu"].contains(&&*given) => meant.replace("DEVICE", &given),
        _ => meant.replace("DEVICE", "cpu"),
    }
}

fn example(verb: &str) -> Option<&'static str> {
    EXAMPLES.iter().find(|(name, _)| *name == verb).map(|(_, line)| *line)
}

fn verb_of<'p>(program: &'p Command, arguments: &[OsString]) -> Option<&'p Command> {
    arguments.iter().skip(1).find_map(|word| program.find_subcommand(word))
}

/// Iterates over all spellings of a command's options.
fn spellings(verb: &Command) -> impl Iterator<Item = String> + '_ {
    verb.get_arguments().flat_map(|option: &Arg| {
        let long = option.get_long().map(|name| format!("--{name}"));
        long.into_iter().chain(option.get_short().map(|letter| format!("-{letter}"))).collect::<Vec<_>>()
    })
}
