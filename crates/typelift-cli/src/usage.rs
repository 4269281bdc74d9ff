//! Suggestions for invalid command lines.

use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use typelift::findings::shell_word;
use typelift::ops::Release;
use typelift::rewrite::library;
use typelift::{Layer, LayerId, Model};

use crate::failure::Failure;
use crate::input::{Input, element_type};
use crate::not_a_model;
use crate::whole_command;

/// Words of other programs and what they mean here: commands or advice, the likeliest first, and the words. A word that begins
/// with a dash is an option only. `_` and capitals are written as `-` and small letters. A meaning that begins with an
/// option counts for each command that has it; one that begins with a command counts elsewhere, too.
const MEANINGS: &[(&str, &str)] = &[
    ("MODEL.xml", "about describe info inputs inspect outputs summary summarize"),
    ("--align pytorch|--rules pytorch", "--pytorch --torch"),
    ("--align off", "--no-align"),
    ("--eliminate-converts", "--no-converts --remove-converts"),
    ("`typelift convert` inserts Converts without an option", "--add-converts --insert-converts"),
    ("write `| head -20` for the first lines", "--head --limit --max-layers"),
    ("--all", "--full --top"),
    ("--allow|--keep", "--exclude --ignore --skip --disable"),
    ("--keep", "--fp32-layers --keep-fp32 --ignored --ignored-scope --layerprecisions --nodes-to-exclude"),
    ("--around|why MODEL.xml LAYER", "--center --layer --name --node --tensor"),
    ("--atol|verify BEFORE.xml AFTER.xml --atol ABS", "--max-diff --abs"),
    ("--bin", "--weights --weights-file -w"),
    ("convert --weights compact", "compact"),
    ("--weights link", "--share-weights"),
    ("--color never", "--no-color"),
    ("--config KEY=VALUE", "--load-config --property"),
    ("--config NUM_STREAMS=N", "--streams"),
    ("--config INFERENCE_NUM_THREADS=N|--jobs", "--nthreads --threads"),
    ("--jobs", "--parallel --workers"),
    ("--deny warnings", "--max-warnings --warnings-as-errors --strict --warn --werror -W"),
    ("--dry-run|--diff", "--check-only --dry-run --dryrun --plan -n"),
    ("--expect", "--golden --load-outputs --reference"),
    (DEVICES, "available-devices devices list-devices query-device"),
    ("--for DEVICE|--device", "--device --target-device -d compile query-model support"),
    ("--device CPU|--for cpu", "cpu"),
    ("--device GPU|--for gpu", "gpu"),
    ("--device NPU|--for npu", "npu"),
    ("--compress", "-c"),
    ("--compress bf16|--hint bf16|--for bf16", "bf16 bfloat16"),
    (HALF, "compress f16 float16 fp16 half minify precision shrink to-fp16 --best --compress-to-fp16 --data-type"),
    ("--hint TYPE", "--infer-precision"),
    ("--decompress", "f32 float32 fp32"),
    ("--format", "--fmt --message-format --output-format"),
    ("--format dot", "--dot --graph --svg --png"),
    ("--format json", "csv json yaml"),
    (GIT, "--allow-dirty --allow-no-vcs --allow-staged"),
    ("--in-place", "--no-backup --yes -y --force --inplace --overwrite -i --write"),
    ("--input-layout NAME=LAYOUT", "nchw nhwc layout set-layout --source-layout --target-layout"),
    ("--input-type NAME=TYPE", "dtype set-type --input-precision --inputioformats --ip --iop"),
    ("--output-type NAME=TYPE", "--op --output-precision --outputioformats"),
    ("--inputs FILE.npz", "--data --input-data --load-inputs --val-range -i"),
    ("--output", "--dest --destination --dst --out --out-dir --out-file --outdir --outfile --output-dir"),
    ("--output", "--output-folder --output-model --output-path --save --save-engine --save-model --model-name -O"),
    ("--quantize MODE", "--bits --mode --weight-format --weight-quant"),
    ("--quantize int4_sym", "compress-weights int4 --w4"),
    ("--quantize int8_sym", "i8 int8 quantize u8 --w8"),
    ("--quantize nf4", "nf4"),
    ("--group-size", "--gs --block-size"),
    ("--quiet", "--no-warn --no-warnings --errors-only --level --severity --silent"),
    ("--rtol|verify BEFORE.xml AFTER.xml --rtol REL", "--max-relative --rel --thresh --threshold --tol --tolerance"),
    ("--rules", "--framework"),
    ("--rules FILE", "-f -r apply patch"),
    ("--samples N", "--iterations --niter --repeat"),
    ("convert --set-length LENGTH=N", "make-dynamic-shape-fixed"),
    ("--set-length batch=N|--at batch=N", "batch batch-size set-batch -b"),
    ("--at NAME=N", "--set-length"),
    (
        SHAPE,
        "dims dynamic input-shape reshape set-shape static --data-shape --input --inputs --shape --shapes --max-shapes",
    ),
    (SHAPE, "--min-shapes --opt-shapes --image-size --imgsz --resolution --seq-len --height --width"),
    ("`--help` lists all options", "--help-full --usage"),
    ("--statement", "--e --pattern"),
    ("rewrite -e 'PATTERN => REPLACEMENT'", "edit modify replace substitute surgeon transform"),
    ("rewrite -e 'add output NEW = TENSOR'", "add-output add-outputs expose mark-outputs"),
    ("rewrite -e 'before NAME : Gather(_, [2,1,0], 1)'", "reverse-channels reverse-input-channels bgr rgb"),
    ("rewrite -e 'before NAME : Subtract(_, VALUE)'", "mean imean mean-value mean-values normalize preprocess"),
    ("rewrite -e 'before NAME : Divide(_, VALUE)'", "scale iscale scale-value scale-values std"),
    ("rewrite -e 'after TENSOR : Transpose(_, [0, 2, 3, 1])'", "transpose"),
    ("rewrite -e 'after TENSOR : Relu(_)'", "add-node insert"),
    ("rewrite -e 'cut [FROM] .. [UNTIL]'", "crop cut extract isolate prune split subgraph --input --inputs --outputs"),
    ("rewrite -e 'freeze NAME = VALUE'", "freeze freeze-placeholder-with-value"),
    ("rewrite -e 'redirect LAYER -> TENSOR'", "delete delete-node remove remove-node"),
    ("rewrite -e 'rename OLD NEW'", "rename rename-input rename-node rename-output --input-names --output-names"),
    ("rewrite -e 'set CONSTANT = VALUE'", "set set-value"),
    ("rewrite -e 'stateful INPUT -> OUTPUT'", "kv-cache low-latency stateful --transform"),
    ("rewrite -e 'join OTHER.xml'", "concat join merge"),
    ("rewrite -e 'lora ADAPTER.safetensors'", "lora peft"),
    ("rewrite -e 'inline LAYER'", "inline"),
    ("rewrite --list-rules", "list-rules passes rules --list"),
    ("--target", "--openvino-version --ov --release"),
    ("--target RELEASE", "--ir-version --opset downgrade migrate"),
    ("--types FROM=TO|--only", "cast --dtype --to --type"),
    ("--only|show --only TYPE", "find grep search --filter --op-type"),
    ("--use|rewrite --use NAME", "pass use"),
    ("--use all|rewrite --use all", "cleanup dce fuse onnxsim optimize optimise opt-level sanitize simplify"),
    ("--use constant-folding|rewrite --use constant-folding", "fold fold-constants"),
    ("rewrite --use common-subexpressions", "cse deduplicate"),
    ("check|--verify", "diagnose doctor errors lint scan status validate --val clippy"),
    ("--write-plan FILE", "-p"),
    ("diff BEFORE.xml AFTER.xml", "cmp compare diff difftool eq same"),
    ("explain", "codes"),
    ("infer", "shape-inference symbolic-shape-infer shapes types"),
    ("promote", "result-type"),
    ("reduce", "bisect debug delta minimize"),
    ("show", "text cat display dump layers list ls nodes print tree"),
    ("show --format dot", "dot svg png"),
    ("show --info", "metadata"),
    ("why MODEL.xml LAYER", "blame trace"),
    ("convert", "align clone copy cp lower save upgrade"),
    ("--canonical|convert --canonical", "fmt format sort"),
    ("--strip-weights zero", "anonymize strip"),
    ("verify BEFORE.xml AFTER.xml", "accuracy-check compare-outputs equal evaluate test"),
    ("view", "gui html ui web browse draw graph netron open plot visualize"),
    ("--version", "version"),
    ("completions", "autocomplete completion"),
    ("stats", "analyze count flops histogram macs memory ops parameters params profile size weights"),
    (BENCHMARK, "--api --avg-runs --exec-graph-path --latency --nireq --pc --perf-counts --profile --report-type"),
    (BENCHMARK, "--throughput --time --warmup -t"),
    (DATA, "awq pot calibrate ptq qat quantize-static --dataset --lora-correction --num-samples --preset"),
    (DATA, "--scale-estimation --sensitivity-metric --subset-size"),
    (EXPORT, "--library --sym --task --trust-remote-code --use-new-frontend"),
    (NO_LESS, "distill sparsify --prune"),
    (EXTENSION, "--custom-ops --extensions --plugins"),
    (FUSED, "--disable-fusing --no-optimize --skip-fuse-bn --skip-optimization --toposort"),
    ("only safe fixes are written; `check` lists others after `perhaps`", "--unsafe"),
    (FINDINGS, "--exit-zero --select"),
    ("`typelift view` writes a page that needs no server", "--browse --host --port"),
    (FIX, "fix repair"),
    (RUN, "benchmark benchmark-app infer-request predict run serve"),
    (OVC, "convert-model export hub import mo optimum-cli ovc paddle2onnx tf2onnx trtexec"),
    (HERE, "config env history init install log plugin template uninstall update"),
];

/// Programs whose own command follows.
const PROGRAMS: &[&str] = &["debug", "inspect", "nncf", "onnx", "openvino", "polygraphy", "surgeon", "typelift"];

const FIX: &str = "`typelift convert` inserts Converts, and `typelift check --fix` corrects the text of the file";
const DEVICES: &str =
    "`typelift verify --device NAME A.xml B.xml` runs on a device, and names those of OpenVINO if it has no such one";
const HERE: &str = "Typelift has no plugins, projects or updates of its own: `typelift -h` lists the commands";
const FINDINGS: &str = "all findings are reported: --allow CODE leaves some out, --deny CODE makes some fail";
const FUSED: &str = "nothing is fused or removed without `typelift rewrite --use`";
const EXTENSION: &str = "operations of an extension are kept as the file declares them, without the extension";
const NO_LESS: &str = "Typelift removes no weights: --quantize and --compress make them smaller";
const SHAPE: &str = "--set-shape NAME=SHAPE|--shape NAME=SHAPE|--at NAME=N";
const HALF: &str = "--compress f16|--hint f16|--for f16";
const GIT: &str = "leave it out: typelift does not look at the state of git";
const RUN: &str = "Typelift does not run models: `benchmark_app` of OpenVINO measures speed, and `typelift verify A.xml B.xml` compares two models with an installed OpenVINO";
const OVC: &str =
    "`ovc` of OpenVINO and `optimum-cli export openvino` convert other formats to IR, which Typelift reads";

/// Advice for options that a command does not have: the command, the options, and what it does or which command has them.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("check", "--config", "there is no file of settings: give options, such as --allow CODE"),
    ("check", "--log-file --output-file --report", "write `--format json > FILE.json`"),
    ("check", "--rules", "rewrite --rules FILE"),
    (
        "completions",
        "--install",
        "`typelift completions bash` prints the script: write it where your shell looks for it",
    ),
    ("convert", "--export --output-format --to-onnx", "typelift writes OpenVINO IR only"),
    ("diff", "-o --html --output --png --side-by-side --view --visual", PAGE),
    ("diff", "--atol", "verify BEFORE.xml AFTER.xml --atol ABS"),
    ("diff", "--rtol", "verify BEFORE.xml AFTER.xml --rtol REL"),
    ("diff", "--kind --only", "write `--ignore KIND` for the kinds of changes to leave out"),
    ("diff", "--values --weights", "`diff` compares the values of constants without an option"),
    ("diff", "--ignore-weights --no-weights", "diff --ignore constant BEFORE.xml AFTER.xml"),
    ("diff", "--brief --name-only --shortstat --stat --summary --unified -u -w", STORY),
    ("explain", "--all --list", "`typelift explain` without a code lists all codes"),
    ("reduce", "--check --cmd --command --script", COMMAND),
    ("reduce", "--fail-regex --regex", "write `--match REGEX`"),
    ("reduce", "--mode", "`reduce` removes layers in every way that keeps the outcome"),
    ("show", "--inputs --outputs --summary", "MODEL.xml"),
    ("show", "--const --data --values --weights", "show MODEL.xml NAME --npy FILE.npy"),
    ("show", "--attrs --consts --types --display-as --ops --show --tree", ATTRIBUTES),
    ("show", "--bodies --body", "`show` prints each body below its layer"),
    (
        "stats",
        "--block --blocks --layers",
        "`stats` lists blocks; `typelift show --around LAYER MODEL.xml` shows layers",
    ),
    ("stats", "--order --sort", "`stats` lists the largest first; --all lists all"),
    ("verify", "--against --other --with", "verify BEFORE.xml AFTER.xml"),
    ("verify", "--save-outputs", "write `--save-inputs FILE.npz`; outputs are compared, not saved"),
    ("verify", "--check-error-stat", "write `--rtol REL` or `--atol ABS`"),
    ("view", "--before --compare --diff --with", PAGE),
    ("view", "--around --layer --name --node --only", "show --around NAME MODEL.xml"),
    ("view", "--dot --export --format --image --pdf --png --svg", PICTURE),
    ("view", "--dark --theme", "the page has the colours of the browser, dark or light"),
    ("view", "--html --save", "write `-o PAGE.html`"),
    ("why", "--from --to", "write `--path`: it begins where a value is stored, and ends where it is used"),
    ("why", "--dtype --type", "`why` explains the type without an option; --shape explains lengths"),
];

/// An example of a conversion, for options that belong to one.
const COMPRESS: &str = "convert --compress f16";
const COMMAND: &str = "the command follows `--`, such as `-- python3 check.py {}`";
const PICTURE: &str = "show --format dot MODEL.xml | dot -Tsvg -o graph.svg";
const PAGE: &str = "view BEFORE.xml AFTER.xml -o changes.html";
const ATTRIBUTES: &str = "`show` prints each layer with its attributes and types";
const STORY: &str = "`diff` begins with a summary; `--format json` lists each change";
const BENCHMARK: &str = "`benchmark_app` of OpenVINO measures speed; `typelift stats --ran EXECUTION.xml MODEL.xml` shows what a plugin ran";
const EXPORT: &str = "`optimum-cli export openvino` exports from a framework; typelift changes the .xml that it writes";

/// Options that other programs have for the model, which is given without one.
const MODEL: &[&str] =
    &["--model", "--input-file", "--input-model", "--input-path", "--ir", "--model-path", "--xml", "--onnx", "-m"];

/// Values that are meant for another option: the option, the beginnings of values or `*` and their end, and the option
/// to write or the advice.
const VALUES: &[(&str, &str, &str)] = &[
    ("--compress", "fp8 f8", "f16 and bf16 are stored by --compress; `--quantize mxfp4` stores fewer bits"),
    ("--deny", "all", "--deny warnings"),
    ("--deny", "note", "--deny warnings` or `--deny CODE"),
    ("--deny", "error", "errors end with status 1 without --deny"),
    ("--allow", "all error note warning", ALLOW),
    ("--for", "arm x86 intel64", "--for cpu"),
    ("--for", "auto multi hetero", "--for cpu --for gpu"),
    ("--for", "myriad vpu hddl gna ncs keembay", "--for npu"),
    ("--for", "cuda nvidia xpu", "OpenVINO has a plugin for GPUs of Intel: write `--for gpu`"),
    ("--for", "genai:", "--for genai:llm"),
    ("--for", "openvino", "`typelift check` without --for checks what OpenVINO itself needs"),
    ("--for", "int8", "`typelift convert --quantize int8_sym` quantizes, and `typelift verify` compares the results"),
    ("--for", "f32 float", "the file says what is computed in f32: `typelift stats` counts it"),
    ("--format", "markdown md table", "--format json"),
    ("--format", "junit xml", "--format sarif` or `--format json"),
    ("--format", "html svg", PAGES),
    (
        "--quantize",
        "w8a8",
        "activations are quantized with data, as by `nncf.quantize`; --quantize stores weights only",
    ),
    ("--quantize", "f8 fp8", FLOATS),
    ("--quantize", "*.txt", "--quantize @FILE"),
    ("--quantize", "awq gptq", DATA),
    ("--quantize", "u4", "--quantize int4_asym"),
    ("--quantize", "4 i4 q4 w4", "--quantize int4_sym"),
    ("--quantize", "8 q8 w8", "--quantize int8_sym"),
    ("--rules", "onnx tensorflow tf", "TensorFlow and ONNX promote nothing: operands must have one type"),
    ("--rules", "np", "--rules numpy"),
    ("--rules", "torch", "--rules pytorch"),
    ("--target", "latest", "without --target, a model is written for the newest release"),
    ("--use", "fuse-all", "--use all"),
    ("--use", "fuse-layernorm layernorm", "--use norms"),
    ("--weights", "*.bin", "--bin FILE"),
    ("[CODE]", "*.xml", "`typelift check MODEL.xml` reports the findings of a model"),
    ("[CODE]", "all e0 list", "`typelift explain` lists the codes"),
];

const ALLOW: &str = "name the codes, such as `--allow stale-port`; --quiet prints errors only";
const PAGES: &str =
    "`typelift view MODEL.xml -o PAGE.html` writes a page, and `typelift view A.xml B.xml -o PAGE.html` one of a diff";
const FLOATS: &str =
    "modes of floats are nf4, fp4 and mxfp4; `--backup fp8_e4m3` is for weights that the mode leaves out";
const DATA: &str = "a mode that needs data is of `nncf.compress_weights`; --quantize computes from the weights alone";

/// Complete command lines, for commands that need more than a model, and what to write instead of further words.
const EXAMPLES: &[(&str, &str, &str)] = &[
    ("completions", "completions bash", ""),
    ("diff", "diff BEFORE.xml AFTER.xml", "give two models"),
    ("explain", "explain type-mismatch", "give one code; `typelift explain` lists them"),
    ("man", "man FOLDER", ""),
    ("promote", "promote f32 i64", ""),
    ("reduce", "reduce --finding type-mismatch MODEL.xml -o OUT.xml", COMMAND),
    ("schema", "schema check", ""),
    ("show", "show", "show --around LAYER MODEL.xml"),
    ("stats", "stats", "show --around LAYER MODEL.xml"),
    (
        "verify",
        "verify BEFORE.xml AFTER.xml",
        "give one model or two; a property is one word, such as `--config KV_CACHE_PRECISION=u8`",
    ),
    ("view", "view", "give one model, or two to see what differs"),
    ("why", "why MODEL.xml LAYER", "why MODEL.xml LAYER"),
];

/// Things and actions that are in names of many kinds.
const OBJECTS: [&str; 11] =
    ["list", "print", "data", "errors", "layer", "layers", "name", "node", "nodes", "status", "tensor"];

/// Words in rows of tables that stand for what was typed.
const PLACES: [&str; 15] = [
    "FROM", "UNTIL", "OLD", "NEW", "LAYER", "CONSTANT", "TENSOR", "LAYOUT", "NAME", "SHAPE", "LENGTH", "VALUE",
    "DEVICE", "OTHER", "N",
];

/// Options with which no model is written elsewhere.
const DONE: [&str; 4] = ["--dry-run", "--audit", "--in-place", "--list-rules"];

/// The most options that a suggestion lists.
const FEW: usize = 8;

/// A model without a command asks for an overview.
pub(crate) fn is_overview(arguments: &[OsString]) -> bool {
    arguments.get(1).is_some_and(|word| is_xml(&word.to_string_lossy()))
}

/// The failure for a long option after one dash, which would be read as a value of `-o`, or as a request for help: `-out`,
/// `-hint`.
pub(crate) fn of_one_dash(arguments: &[OsString]) -> Option<Failure> {
    let words = arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    let of_help = |word: &str| word.len() > 2 && (word.starts_with("-h") || word.starts_with("-V"));
    let of_output = |word: &str| {
        let is_other = || !meanings(&format!("-{word}")).is_empty();
        word.starts_with("-o") && word.len() > 2 && !word.contains('=') && (is_other() || word == "-output")
    };
    let word = words.into_iter().find(|word| of_help(word) || of_output(word))?;
    let message = format!("unexpected argument `{word}` found");
    if let Some(habit) = of_habit(arguments) {
        return Some(Failure::new(message).help(habit));
    }
    if of_help(word) {
        return Some(Failure::new(message).help(format!("a long option has two dashes: `-{word}`, and help is `-h`")));
    }
    let program = whole_command();
    let tip = (!is_output(word)).then(|| Asked::new(&program, arguments).option_tip(word)).flatten();
    Some(Failure::new(message).help(tip.unwrap_or_else(|| "write `-o OUT.xml` or `--output OUT.xml`".to_owned())))
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
        ErrorKind::UnknownArgument => {
            let short = text(error, ContextKind::InvalidArg).unwrap_or_default();
            with_backticks(&said).replace(&format!("`{short}`"), &format!("`{}`", whole(&short, arguments)))
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
    let other = || match arguments.iter().skip(1).find_map(|word| program.find_subcommand(word)) {
        Some(verb) if verb.get_name() == "explain" || said.contains("CODE") => {
            "`typelift explain` lists the codes, and `typelift check MODEL.xml` prints those of a model".to_owned()
        }
        Some(verb) if verb.get_name() != "help" => format!("`typelift {} -h` lists the options", verb.get_name()),
        _ => "`typelift -h` lists the commands".to_owned(),
    };
    let tip = of_habit(arguments)
        .or_else(|| tip(error, program, arguments))
        .or_else(|| suggested(error))
        .or(meant)
        .unwrap_or_else(other);
    Failure::new(message).help(tip)
}

/// Replaces the quotes around words: `'x'` becomes `` `x` ``.
fn with_backticks(said: &str) -> String {
    let quotes: Vec<usize> = said.match_indices('\'').map(|(at, _)| at).collect();
    if quotes.len().is_multiple_of(2) { said.replace('\'', "`") } else { said.to_owned() }
}

fn suggested(error: &Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    kinds.into_iter().find_map(|kind| match error.get(kind)? {
        ContextValue::String(name) => Some(format!("did you mean `{name}`?")),
        ContextValue::Strings(names) => names.first().map(|name| format!("did you mean `{name}`?")),
        _ => None,
    })
}

fn tip(error: &Error, program: &Command, arguments: &[OsString]) -> Option<String> {
    let asked = Asked::new(program, arguments);
    match error.kind() {
        ErrorKind::InvalidSubcommand => asked.verb_tip(&text(error, ContextKind::InvalidSubcommand)?),
        ErrorKind::UnknownArgument => {
            let option = text(error, ContextKind::InvalidArg)?;
            asked.option_tip(&whole(&option, arguments))
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let (option, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
            let name = option.split(' ').next()?;
            let fitted = asked.verb.and_then(|verb| asked.fitted(verb, name, &value));
            match value.split_once(':') {
                _ if value.is_empty() => Some(match error.get(ContextKind::ValidValue) {
                    Some(ContextValue::Strings(known)) if !known.is_empty() => format!("write `{name} {}`", known[0]),
                    _ => format!("write `{}`", plain(&option)),
                }),
                _ if fitted.is_some() => fitted.map(|words| {
                    if let Some(verb) = asked.verb.filter(|verb| asked.has_others(verb, name)) {
                        return format!("write `{}`", asked.line(verb.get_name()));
                    }
                    let is_list = words.len() > 2 && words.iter().step_by(2).all(|word| word == name);
                    let start = if is_list { "give the option once for each: " } else { "write " };
                    format!("{start}`{}`", shown(&words))
                }),
                _ if option.contains("FROM=TO") && !value.contains('=') => Some(format!("write `{name} {value}=TO`")),
                _ if option.contains("<NAME=") && !value.contains('=') => {
                    let is_name = value.starts_with(|letter: char| letter.is_lowercase() || letter == '_');
                    let is_name = is_name && element_type(&value).is_err();
                    let place = plain(option.split('=').nth(1)?);
                    let pair = if is_name { format!("{value}={place}") } else { format!("NAME={value}") };
                    Some(format!("write `{name} {}`; `{}` lists the names", shell_word(&pair), asked.line("MODEL.xml")))
                }
                _ if option.contains("<KEY=") && value.starts_with('{') => {
                    Some(format!("write `{name} KEY=VALUE` for each property"))
                }
                None if option.contains("<KEY=") => Some(format!("write `{name} {value}=VALUE`")),
                _ => value_tip(name, &value.to_lowercase(), error),
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let verb = asked.verb?.get_name();
            let missing = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing)) => missing.first().filter(|arg| arg.contains("--")),
                _ => None,
            };
            if missing.is_some_and(|arg| arg.starts_with("<--")) {
                let example = (verb == "convert").then(|| format!(", such as `{}`", asked.line(COMPRESS)));
                return Some(format!("write one of these options{}", example.unwrap_or_default()));
            }
            if let Some(option) = missing.filter(|arg| arg.starts_with("--")) {
                return Some(format!("write `{}`", plain(option)));
            }
            let names_tensor = error.render().to_string().contains("<NAME>");
            let line = if names_tensor { "show MODEL.xml NAME --npy FILE.npy" } else { verb };
            Some(format!("for example, `{}`", asked.line(line)))
        }
        ErrorKind::ArgumentConflict
            if let Some(tensor) = asked.value_of("--output").filter(|output| !output.contains('.')) =>
        {
            Some(asked.said(&format!("rewrite -e 'cut {tensor}'")))
        }
        ErrorKind::TooManyValues => {
            let option = text(error, ContextKind::InvalidArg)?;
            let is_off = is_off(asked.value_of(&option));
            Some(if is_off { format!("leave `{option}` out") } else { format!("write `{option}`") })
        }
        ErrorKind::ArgumentConflict => Some("leave one of the two out".to_owned()),
        _ => None,
    }
}

/// An option with the word for its value: `--quantize MODE` for `--quantize <MODE|@FILE>`.
fn plain(option: &str) -> String {
    option.split('|').next().unwrap_or(option).replace(['<', '>'], "")
}

/// An option as it was typed, where only its first letter is read: `-shape` for `-s`.
fn whole(option: &str, arguments: &[OsString]) -> String {
    let is_short = option.len() == 2 && option.starts_with('-') && option != "--";
    let mut words = arguments.iter().filter_map(|word| word.to_str()?.split('=').next());
    let long = words.find(|word| is_short && word.len() > 2 && word.starts_with(option));
    long.unwrap_or(option).to_owned()
}

fn value_tip(option: &str, value: &str, error: &Error) -> Option<String> {
    let value = if option == "--use" { &value.replace('_', "-") } else { value };
    let is_like = |text: &&str| match text.strip_prefix('*') {
        Some(end) => value.ends_with(end),
        None => value.starts_with(*text),
    };
    if value.starts_with('@') {
        return None;
    }
    if let Some((.., meant)) =
        VALUES.iter().find(|(name, texts, _)| option == *name && texts.split(' ').any(|text| is_like(&text)))
    {
        return Some(if meant.starts_with("--") { format!("write `{meant}`") } else { (*meant).to_owned() });
    }
    if let Some(meant) = meanings(value).into_iter().find(|meant| meant.split(' ').next() == Some(option)) {
        return Some(format!("write `{meant}`"));
    }
    if option == "--use" {
        return Some(format!("write `--use {}`", near_set(value)?));
    }
    let value = if option == "--target" { value.trim_start_matches(|it: char| !it.is_numeric()) } else { value };
    let releases = Release::all().map(|release| release.to_string());
    if let ("--target", Some(last)) = (
        option,
        releases
            .filter(|it| format!("{it}.").starts_with(&format!("{value}.")) || value.starts_with(&format!("{it}.")))
            .last(),
    ) {
        return Some(format!("write `--target {last}`"));
    }
    let Some(ContextValue::Strings(known)) = error.get(ContextKind::ValidValue) else {
        let rendered = error.render().to_string();
        let listed = rendered.split("expected one of ").nth(1)?.split('\n').next()?;
        let near = typelift::near(value, listed.split(", ").map(str::trim));
        return near.map(|near| format!("write `{option} {near}`"));
    };
    let longer = known.iter().filter(|name| value.len() > 2 && name.contains(value)).take(3);
    let longer: Vec<_> = longer.map(|name| format!("`{name}`")).collect();
    (!longer.is_empty()).then(|| format!("did you mean {}?", longer.join(" or ")))
}

/// The set of rules with the most words of a name, in its own name or in its description: fuse-sdpa for
/// `fuse_attention`.
fn near_set(name: &str) -> Option<&'static str> {
    let names = || library::SETS.iter().map(|set| set.name);
    if let Some(near) = typelift::near(name, names()).filter(|near| is_slip(name, near)) {
        return names().find(|known| *known == near);
    }
    let score = |set: &&library::Set| {
        let about = set.description().to_lowercase();
        let of = |word: &str| usize::from(set.name.contains(word)) + 2 * usize::from(about.contains(word));
        name.split('-').filter(|word| word.len() > 3).map(of).sum::<usize>()
    };
    let best = library::SETS.iter().rev().max_by_key(score).filter(|set| score(set) > 1);
    best.map(|set| set.name).or_else(|| typelift::near(name, names()).and_then(|near| names().find(|it| *it == near)))
}

/// Dashes and quotes that text programs write.
const TYPOGRAPHIC: [char; 6] = ['—', '–', '“', '”', '‘', '’'];

/// Advice about a habit of git or of the shell in the words of a command that failed.
pub(crate) fn of_habit(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let is_file = |word: &str| Path::new(word).exists();
    let verb = *words.get(1)?;
    if words.iter().any(|word| word.starts_with(TYPOGRAPHIC) && !is_file(word)) {
        let quote = if cfg!(windows) { "\"" } else { "'" };
        let plain = |word: &&str| match word.contains(TYPOGRAPHIC) {
            false if word.starts_with('-') => (*word).to_owned(),
            false => shell_word(word).into_owned(),
            true => word.replace('—', "--").replace('–', "-").replace(['“', '”', '‘', '’'], quote),
        };
        let line = words[1..].iter().map(plain).collect::<Vec<_>>().join(" ");
        return Some(format!("a text program has changed its dashes or quotes: `typelift {line}`"));
    }
    let model = words[2..].iter().find(|word| word.ends_with(".xml") && !word.contains("..") && !word.contains(':'));
    let is_revision = |word: &&&str| {
        let is_path = word.split_once(':').is_some_and(|(name, path)| {
            name.len() > 1 && !name.contains(['=', '/']) && !path.starts_with("//") && path.ends_with(".xml")
        });
        let has_sign = word.contains("..") || word.contains("@{") || word.chars().skip(1).any(|c| "~^".contains(c));
        !is_file(word) && !word.starts_with(['-', '.']) && (word.starts_with("HEAD") || is_path || has_sign)
    };
    for pair in words.windows(2).skip(1) {
        let (option, value) = (pair[0], pair[1]);
        let at = words.iter().position(|it| *it == value).unwrap_or_default();
        let rest = words[at..].iter().take_while(|it| !it.starts_with('-') && !it.ends_with(".xml") && !is_file(it));
        let rest: Vec<&str> = rest.copied().collect();
        match option {
            "--hint" | "-hint" if ["latency", "throughput"].contains(&&*value.to_lowercase()) => {
                return Some(format!("write `--config PERFORMANCE_HINT={}`", value.to_uppercase()));
            }
            "--rule" | "--rules" | "-r" if value.contains("=>") && !is_file(value) => {
                return Some(format!("--rules takes a file: write `-e {}`", shell_word(value)));
            }
            "-e" | "--statement" if rest.len() > 1 => {
                return Some(format!("quote the statement: `-e {}`", shell_word(&rest.join(" "))));
            }
            "-e" | "--statement"
                if ["()", "(,", ", )", "  "].iter().any(|gap| value.replace("Parameter()", "").contains(gap)) =>
            {
                return Some(
                    "the shell replaces `$` in double quotes: write the statement in single quotes".to_owned(),
                );
            }
            _ if option.starts_with("--")
                && rest.len() > 1
                && (value.contains('[') || rest.contains(&"=") || value.ends_with('=')) =>
            {
                return Some(format!("quote the value: `{option} {}`", shell_word(&rest.concat())));
            }
            "--types" | "-e" | "--statement" if value.ends_with('-') || value.ends_with(" =") => {
                let value = value.trim_end_matches(['-', '=', ' ']);
                let whole = if option == "--types" { format!("{value}=TO") } else { format!("'{value} => …'") };
                return Some(format!("the shell takes `>` for a file to write: quote it, as `{option} {whole}`"));
            }
            _ => (),
        }
    }
    let cached = words.iter().find(|word| verb == "diff" && ["--cached", "--staged"].contains(word));
    let word = words[2..].iter().find(|word| !word.is_empty() && is_revision(word)).or(cached)?;
    let between = word.split_once("..").filter(|(a, b)| a.ends_with(".xml") && b.ends_with(".xml"));
    if let Some((before, after)) = between {
        return Some(format!("write `typelift {verb} {} {}`", shell_word(before), shell_word(after)));
    }
    let of_file = word.split_once(':').filter(|(_, path)| path.ends_with(".xml"));
    if let (Some(_), false) = (of_file, word.contains("..")) {
        let others = words[1..].iter().map(|it| if it == word { "-".into() } else { shell_word(it) });
        let others = others.collect::<Vec<_>>().join(" ");
        return Some(format!("`git show {} | typelift {others}` reads the file of a commit", shell_word(word)));
    }
    let model = model.map_or("MODEL.xml".into(), |model| shell_word(model));
    let which = if word.starts_with('-') { (*word).into() } else { shell_word(word) };
    let tool = format!("`git difftool --no-prompt --extcmd 'typelift diff' {which} -- {model}`");
    (verb == "diff").then(|| format!("{tool} compares with a commit"))
}

fn text(error: &Error, kind: ContextKind) -> Option<String> {
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::StyledStr(text) => Some(text.to_string()),
        _ => None,
    }
}

impl Asked<'_> {
    fn verb_tip(&self, word: &str) -> Option<String> {
        let named = |word: &str| {
            let meanings = meanings(word);
            let first = meanings.iter().find(|meant| !meant.starts_with("--")).or(meanings.first()).copied();
            self.program.find_subcommand(word).map(Command::get_name).or(first)
        };
        // The command of another program follows its name: `surgeon extract`.
        let words = || self.others().skip_while(|it| *it != word).take_while(|it| !is_xml(it));
        let of_program =
            words().filter(|it| !PROGRAMS.contains(it)).find_map(named).or_else(|| words().find_map(named));
        let of_program = of_program.filter(|_| PROGRAMS.contains(&word));
        if let Some(meant) = of_program.or_else(|| named(word)) {
            let other = self.conversion().unwrap_or(if word == "trtexec" { RUN } else { "convert" });
            let is_other = meant == OVC && word != "export" && !self.models().is_empty();
            let is_run = meant == RUN && self.models().len() == 2;
            let is_close = self.options().any(|(name, _)| meanings(name).iter().any(|it| it.starts_with("verify ")));
            let is_verified = is_run || is_close && meant.starts_with("diff");
            let meant = if is_verified { "verify BEFORE.xml AFTER.xml" } else { meant };
            return Some(self.said(&self.whole_meaning(if is_other { other } else { meant })));
        }
        if let Some(advice) = not_a_model::file(word) {
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
        let names = || self.program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
        let near = |name: &&str| is_slip(word, name);
        let nearest = typelift::near(word, names()).filter(|name| near(&&**name));
        if let Some(name) = nearest.or_else(|| names().find(near).map(str::to_owned)) {
            return Some(format!("did you mean `{name}`?"));
        }
        let lower = dashed(word);
        let sets = || library::SETS.iter().map(|set| set.name);
        let exact = sets().find(|set| *set == lower);
        let known = || MEANINGS.iter().flat_map(|(_, words)| words.split(' ').map(|word| word.trim_start_matches('-')));
        let within = within(word, known()).filter(|other| other != word && exact.is_none());
        let part = exact.or_else(|| sets().find(|set| lower.len() > 3 && set.contains(&lower)));
        if let Some(set) = part.filter(|_| within.is_none()) {
            return Some(self.said(&format!("rewrite --use {set}")));
        }
        let other = within.or_else(|| typelift::near(word, known()).filter(|name| near(&&**name)));
        other.filter(|other| other != word).and_then(|other| self.verb_tip(&other))
    }

    /// A meaning with the first command that has it, if it is an option.
    fn whole_meaning(&self, meant: &str) -> String {
        let mut verbs = self.program.get_subcommands().filter(|verb| !verb.is_hide_set());
        let verb = verbs.find(|verb| meant.starts_with("--") && has(verb, meant));
        verb.map_or_else(|| meant.to_owned(), |verb| format!("{} {}", verb.get_name(), valued(verb, meant)))
    }

    fn option_tip(&self, option: &str) -> Option<String> {
        let name = option.split('=').next().unwrap_or(option);
        let Some(verb) = self.verb else { return self.tip_without_command(option, name) };
        if is_overview(self.arguments) && option == verb.get_name() {
            return Some(format!("write `{}`", self.line(option)));
        }
        if !option.starts_with('-') {
            let row = EXAMPLES.iter().find(|(name, _, more)| *name == verb.get_name() && !more.is_empty());
            let help = || format!("`typelift help {}` explains the command", verb.get_name());
            return Some(row.map_or_else(help, |(.., more)| self.said(more)));
        }
        let dashed = dashed(name);
        let long = dashed.trim_start_matches('-');
        let only_asked = |done: &str| format!("leave `{name}` out: `typelift {}` {done}", verb.get_name());
        let off = is_off(self.value_of(name)).then(|| only_asked("does it only if an option asks for it"));
        let negated = ["no-", "skip-", "disable-", "without-"].iter().any(|start| long.starts_with(start));
        let own = verb.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
        let own: Vec<_> = own.filter_map(Arg::get_long).filter(|name| *name != "help").collect();
        let others = MEANINGS.iter().flat_map(|(_, words)| words.split(' ')).chain(MODEL.iter().copied());
        let others: Vec<_> = others.map(|word| word.trim_start_matches('-')).collect();
        let near = |names: &[&str]| {
            typelift::near(long, names.iter().copied()).filter(|near| is_slip(long, near) && long.len() > 1)
        };
        let mut verbs = self.program.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
        let is_begun = |name: &&str| *name == long || long.len() > 3 && name.starts_with(long);
        let meaning = |meant: &str| self.meaning(verb, name, meant);
        off.or_else(|| meaning(&dashed))
            .or_else(|| {
                let near = format!("--{}", near(&own)?);
                let is_same = |value: &str| self.fitted(verb, &near, value).is_none_or(|words| words[1..] == [value]);
                let is_typed = self.value_of(name).is_none_or(is_same) && !self.has_others(verb, name);
                if is_typed { Some(format!("did you mean `{near}`?")) } else { meaning(&near) }
            })
            .or_else(|| negated.then(|| only_asked("does only what its options say")))
            .or_else(|| verbs.find(is_begun).map(|verb| self.said(verb)))
            .or_else(|| meaning(&format!("--{}", within(name, own.iter().chain(&others).copied())?)))
            .or_else(|| meaning(&format!("--{}", near(&others)?)))
            .or_else(|| {
                let list = own.iter().map(|name| format!("--{name}")).collect::<Vec<_>>().join(", ");
                let few = format!("the options of `typelift {}` are {list}", verb.get_name());
                let line = self.line(verb.get_name());
                let without =
                    format!("leave `{name}` out: `{line}`; `typelift {} -h` lists the options", verb.get_name());
                if (1..=FEW).contains(&own.len()) {
                    Some(few)
                } else {
                    Some(without).filter(|_| !self.models().is_empty())
                }
            })
    }

    /// The tip for an option in a line without a command.
    fn tip_without_command(&self, option: &str, name: &str) -> Option<String> {
        let is_overview = is_overview(self.arguments);
        if let Some(model) = self.models().first().filter(|_| option.starts_with("-o") || !is_overview) {
            let line = self.line(self.conversion().unwrap_or("convert"));
            return Some(format!("the command comes first: `{line}`, or `typelift {}`", shell_word(model)));
        }
        if let Some(meant) = meanings(name).first().copied().or_else(|| self.conversion()) {
            return Some(self.said(&self.whole_meaning(meant)));
        }
        match self.program.get_subcommands().find(|verb| has(verb, name)) {
            Some(verb) if is_overview => Some(format!("write `{}`", self.line(verb.get_name()))),
            Some(verb) => Some(format!("`{option}` is an option of `typelift {}`", verb.get_name())),
            None if option.starts_with('-') => None,
            None => Some(format!("to compare two models, write `{}`", self.line("diff"))),
        }
    }
}

/// True if a word differs from a name in one place, or in its end, or is its beginning.
fn is_slip(word: &str, name: &str) -> bool {
    let (word, name) = (word.to_lowercase(), name.to_lowercase());
    let same = |pairs: &mut dyn Iterator<Item = (char, char)>| pairs.take_while(|(a, b)| a == b).count();
    let (longest, shortest) = (word.chars().count().max(name.chars().count()), word.len().min(name.len()));
    let before = same(&mut word.chars().zip(name.chars()));
    let after = same(&mut word.chars().rev().zip(name.chars().rev())).min(longest - before);
    let is_beginning = before >= 3 && before == shortest || before > 3 && before + 1 >= name.len();
    is_beginning || longest > 3 && (before > 0 || after + 1 == longest) && before + after + 2 >= longest
}

/// The name of the most words, all of which are in an option: `input-shape` for `--overwriteInputShape`. The last one
/// counts: `shape` for `--data-shape`.
fn within<'n>(option: &str, names: impl Iterator<Item = &'n str>) -> Option<String> {
    // A plural counts as its singular.
    let whole = |name: &str| format!("-{}-", name.trim_start_matches('-')).replace("s-", "-");
    let words = whole(&dashed(option));
    // A word among many others means little: `--dumpLayerInfo`.
    let parts = |name: &str| name.split('-').filter(|part| !part.is_empty()).count();
    let is_half = |name: &str| parts(name) * 2 >= parts(&words) || words.starts_with(&whole(name));
    let is_within = |name: &&str| name.len() > 3 && is_half(name) && words.contains(&whole(name));
    // The action is the first word of a command, and the thing is the last one of an option.
    let place = |name: &str| {
        words.find(&whole(name)).unwrap_or_default() as isize * if option.starts_with('-') { 1 } else { -1 }
    };
    let rank = |name: &&str| (!OBJECTS.contains(name), name.matches('-').count(), place(name));
    let best = names.filter(is_within).max_by_key(rank);
    best.map(str::to_owned)
}

/// A command line that is refused.
struct Asked<'a> {
    program: &'a Command,
    arguments: &'a [OsString],
    verb: Option<&'a Command>,
    /// Options with their values, and other words without a name.
    words: Vec<(String, Option<String>)>,
    model: OnceCell<Option<Model>>,
}

impl<'a> Asked<'a> {
    fn new(program: &'a Command, arguments: &'a [OsString]) -> Self {
        let verb = arguments.iter().skip(1).find_map(|word| program.find_subcommand(word));
        let texts: Vec<_> = arguments.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
        let is_option = |text: &str| text.starts_with('-') && text[1..].starts_with(|first: char| !first.is_numeric());
        let mut rest = texts.iter().take_while(|text| *text != "--").peekable();
        let mut words = Vec::new();
        while let Some(text) = rest.next() {
            if !is_option(text) {
                words.push((String::new(), Some(text.clone())));
                continue;
            }
            let (name, value) =
                text.split_once('=').map_or((&**text, None), |(name, value)| (name, Some(value.into())));
            let known = verb.into_iter().chain(program.get_subcommands()).find_map(|verb| argument(verb, name));
            let takes_value = known.is_none_or(|option| option.get_action().takes_values());
            let next = |text: &&String| takes_value && !is_option(text);
            words.push((name.to_owned(), value.or_else(|| rest.next_if(next).cloned())));
        }
        Self { program, arguments, verb, words, model: OnceCell::new() }
    }

    fn options(&self) -> impl Iterator<Item = (&str, Option<&str>)> {
        self.words.iter().filter(|(name, _)| !name.is_empty()).map(|(name, value)| (&**name, value.as_deref()))
    }

    fn others(&self) -> impl Iterator<Item = &str> {
        self.words.iter().filter(|(name, _)| name.is_empty()).filter_map(|(_, value)| value.as_deref())
    }

    /// The words after the command that are no files.
    fn rest(&self) -> impl Iterator<Item = &str> {
        let is_known = |word: &str| PROGRAMS.contains(&word) || self.program.find_subcommand(word).is_some();
        let rest = self.others().skip(1).skip_while(move |word| is_known(word) || !meanings(word).is_empty());
        rest.filter(|word| !is_xml(word) && !Path::new(word).exists())
    }

    /// The value that was typed for an option, if one was.
    fn value_of(&self, option: &str) -> Option<&str> {
        self.options().find(|(name, _)| *name == option)?.1.filter(|value| !value.is_empty())
    }

    /// The models that were typed, as words or as values of options of other programs.
    fn models(&self) -> Vec<&str> {
        let given = self.words.iter().filter(|(name, _)| !is_output(name) && name != "--differs");
        let files = given.filter_map(|(_, value)| value.as_deref());
        files.filter(|file| is_xml(file) || *file == "-" || file.contains('/') && Path::new(file).exists()).collect()
    }

    fn output(&self) -> Option<&str> {
        let given = || self.options().filter(|(name, _)| is_output(name)).filter_map(|(_, value)| value);
        given().find(|value| is_xml(value)).or_else(|| given().next())
    }

    /// The model that was typed, if it can be read: its inputs and outputs complete what was typed.
    fn model(&self) -> Option<&Model> {
        let read = || {
            let file = self.models().into_iter().find(|file| Path::new(file).is_file())?;
            Input::new(file).load().ok()?.model.take()
        };
        self.model.get_or_init(read).as_ref()
    }

    /// The inputs or the outputs of the model with their dimensions.
    fn ends(&self, option: &str) -> Vec<(String, Vec<String>)> {
        let Some(model) = self.model() else { return Vec::new() };
        let layers: Vec<_> =
            if option.contains("output") { model.outputs().collect() } else { model.inputs().collect() };
        let end = |layer: &&Layer| {
            let dims = layer.outputs().first().and_then(|port| port.shape().dims()).unwrap_or_default();
            (model.end_name(layer), dims.iter().map(ToString::to_string).collect())
        };
        layers.iter().map(end).collect()
    }

    /// The input that was typed, or the first one whose dimensions fit.
    fn input(&self, name: &str, fits: impl Fn(&[String]) -> bool) -> Option<(String, Vec<String>)> {
        let (name, inputs) = (name.trim_end_matches([':', '=', '-', '>', ' ']), self.ends(""));
        let known = inputs.into_iter().find(|(own, dims)| own == name || name.is_empty() && fits(dims));
        known.or_else(|| Some((name.to_owned(), Vec::new())).filter(|_| !name.is_empty()))
    }

    /// The option of a command that is meant by an option, with a place for its value or the value itself.
    fn own(&self, verb: &Command, name: &str) -> Option<String> {
        let dashed = dashed(name);
        let exact = has(verb, &dashed).then(|| dashed.clone());
        let plural = [format!("{dashed}s"), dashed.trim_end_matches('s').to_owned()];
        let plural = plural.into_iter().find(|other| *other != dashed && has(verb, other));
        // `--shape` without a value is `--shapes`.
        let is_alone = self.options().any(|(given, value)| given == name && value.is_none());
        let switch = plural.clone().filter(|other| is_alone && valued(verb, other) == *other);
        let row = meanings(&dashed).into_iter().find_map(|meant| {
            let own = meant.strip_prefix(verb.get_name()).map_or(meant, str::trim_start);
            (own.starts_with("--") && has(verb, own)).then(|| own.to_owned())
        });
        let is_here = self.verb.is_some_and(|it| it.get_name() == verb.get_name());
        if is_here { exact.or(switch).or(row) } else { switch.or(row).or(exact) }.or(plural)
    }

    /// The words for an option of ours with the value that was typed, if it takes that.
    fn fitted(&self, verb: &Command, meant: &str, given: &str) -> Option<Vec<String>> {
        let (option, lower) = (meant.split(' ').next()?, given.to_lowercase());
        let place = valued(verb, option);
        let given = if place.contains("NAME=") { given.trim_matches(['{', '}', '"']) } else { given };
        let is_other = given.contains(['{', '"']) || given.starts_with('@') || is_xml(given);
        let place = place.split_once(' ').map(|(_, place)| place).filter(|_| !is_other)?;
        let mode = lower.replace('-', "_");
        let alias = VALUES.iter().find(|(own, texts, _)| *own == option && has_word(texts, &mode));
        if let Some((.., words)) = alias.filter(|(.., words)| words.starts_with("--") && !words.contains('`')) {
            return Some(split(words));
        }
        if let Some((mode, group)) = given.split_once(':').filter(|_| option == "--quantize") {
            return Some(split(&format!("--quantize {} --group-size {group}", mode.to_lowercase())));
        }
        let kind = element_type(&lower).ok().map(|ty| ty.to_string());
        let is_path = given.ends_with('/') || [".bin", ".npz", ".rules", ".txt"].iter().any(|end| lower.ends_with(end));
        let pair = given.replace("->", "=").replace(':', "=").replace(' ', "");
        let forms = match place {
            "NAME=SHAPE" => vec![self.shape(given)],
            "NAME=LAYOUT" => vec![self.layout(option, given)],
            "NAME=N" => match self.length(option, given)? {
                words if words[0] != option => return Some(words),
                mut words => vec![words.pop()],
            },
            "NAME=TYPE" => {
                let (name, is_type) = (self.ends(option).into_iter().next(), kind.is_some() && pair == given);
                vec![name.map(|(name, _)| format!("{name}={given}")).filter(|_| is_type), Some(pair)]
            }
            "FROM=TO,…" => {
                let to = Some(format!("f32={pair}")).filter(|_| kind.is_some_and(|kind| kind != "f32"));
                vec![Some(pair).filter(|pair| pair.contains('=')), to]
            }
            "KEY=VALUE" => vec![Some(given.replacen(':', "=", 1))],
            "N" | "REL" | "ABS" | "SECONDS" | "R" => {
                let percent = given.strip_suffix('%').and_then(|number| Some(number.parse::<f64>().ok()? / 100.0));
                let bare = given.trim_end_matches(|letter: char| letter.is_alphabetic()).to_owned();
                vec![percent.map(|number| number.to_string()), Some(bare)]
            }
            "TYPE" if option == "--hint" => vec![kind],
            _ if place.starts_with("FILE") || place.starts_with("OUT") => {
                vec![Some(given.to_owned()).filter(|_| is_path && !lower.contains(':'))]
            }
            _ => {
                let layer = given.rsplit_once(':').filter(|(_, ty)| element_type(ty).is_ok()).map(|it| it.0.to_owned());
                let glob = given.replace(".*", "*").replace('\\', "").trim_matches(['^', '$']).to_owned();
                let small = ["--align", "--compress", "--for", "--quantize"].contains(&option).then(|| lower.clone());
                let parts = [lower.rsplit('.').next(), lower.split('.').next()].map(|part| part.map(str::to_owned));
                let forms = [layer, small, Some(glob).filter(|_| given.contains(".*")), Some(given.to_owned())];
                forms.into_iter().chain([Some(lower), Some(mode)]).chain(parts).collect()
            }
        };
        let form = forms.into_iter().flatten().find(|form| takes(self.program, verb, option, form));
        let is_whole = |words: &Vec<String>| *words != [option, given] && refused(self.program, verb, words).is_none();
        let other = || meanings(given).into_iter().filter(|meant| has(verb, meant)).map(split).find(is_whole);
        form.map(|form| vec![option.to_owned(), form]).or_else(|| self.repeated(verb, option, given)).or_else(other)
    }

    /// A shape as `NAME=[…]`, for `NAME[…]`, `NAME:1x3`, `1,3`, and for one without the first dimensions.
    fn shape(&self, given: &str) -> Option<String> {
        let given = given.rfind([']', ')']).map_or(given, |end| &given[..end]);
        let (name, dims) = match given.find(['[', '(']) {
            Some(at) => (&given[..at], &given[at + 1..]),
            None => given.rsplit_once([':', '=']).unwrap_or(("", given)),
        };
        let is_open = |text: &str| text == "-1" || text.chars().all(|letter| letter.is_alphabetic() || letter == '_');
        let is_named = dims.contains([',', ';', ' ']);
        let texts = dims.split(|letter: char| !is_named && letter == 'x' || [',', ';', ' ', '*'].contains(&letter));
        let texts = texts.filter(|text| !text.is_empty());
        let dims: Vec<String> = texts.map(|text| if is_open(text) { "?" } else { text }.to_owned()).collect();
        let fits = |own: &[String]| {
            let is_same = |(a, b): (&String, &String)| a == b || [a, b].iter().any(|dim| dim.parse::<u64>().is_err());
            own.len() >= dims.len() && own.iter().rev().zip(dims.iter().rev()).all(is_same)
        };
        let is_whole = |own: &[String]| own.len() == dims.len();
        let fitting = self.input(name, |own| is_whole(own) && fits(own)).or_else(|| self.input(name, is_whole));
        let is_size = |own: &[String]| dims.len() == 1 && own.len() == 4;
        let (name, own) = fitting.or_else(|| self.input(name, |own| fits(own) || is_size(own)))?;
        // The size of an image is its height and its width.
        let dims = if dims.len() == 1 && own.len() == 4 { [&dims[..], &dims].concat() } else { dims };
        let is_shape = dims.iter().any(|dim| dim.contains(|letter: char| letter.is_ascii_digit()));
        let more = if own.len() > dims.len() { &own[..own.len() - dims.len()] } else { &[] };
        is_shape.then(|| format!("{name}=[{}]", [more, &dims].concat().join(",")))
    }

    /// A layout as `NAME=NCHW:NHWC`, for `nhwc`, `NAME(nchw->nhwc)`, and for two options for the source and the target.
    fn layout(&self, option: &str, given: &str) -> Option<String> {
        let side = |word: &str| self.options().find(|(name, _)| name.contains(word)).and_then(|(_, value)| value);
        let text = match (side("source"), side("target")) {
            (Some(from), Some(to)) => format!("{from}:{to}"),
            _ => given.to_owned(),
        };
        let words = || text.split(['(', ')', '[', ']', ':', '=', '-', '>', ',', ' ']).filter(|word| !word.is_empty());
        let is_layout =
            |word: &&str| word.len() > 1 && word.to_uppercase().chars().all(|letter| "NCDHWTL".contains(letter));
        let layouts: Vec<_> = words().filter(is_layout).map(str::to_uppercase).collect();
        let name = words().find(|word| !is_layout(word)).unwrap_or_default();
        let (to, rank) = (layouts.last()?, layouts.last()?.len());
        let ends =
            self.ends(option).into_iter().find(|(own, dims)| own == name || name.is_empty() && dims.len() == rank);
        let (name, dims) = ends.or_else(|| Some((name.to_owned(), Vec::new())).filter(|_| !name.is_empty()))?;
        // The layout that the model has is not asked for.
        let is_own = to.get(1..2) == Some("C") && dims.get(1).is_some_and(|dim| ["1", "3", "4"].contains(&&**dim));
        Some(match &layouts[..] {
            [_] if is_own || side("source").is_some() => format!("{name}={to}:{}", exchanged(to)),
            [_] => format!("{name}={}:{to}", exchanged(to)),
            [from, ..] => format!("{name}={from}:{to}"),
            [] => return None,
        })
    }

    /// The length of the batch of the first input, which is open or is a part of its shape.
    fn length(&self, option: &str, given: &str) -> Option<Vec<String>> {
        let pair = |option: &str, value: String| Some(vec![option.to_owned(), value]);
        if given.contains('=') || given.parse::<u64>().is_err() {
            return pair(option, given.replacen(':', "=", 1));
        }
        let Some((name, dims)) = self.ends("").into_iter().next() else {
            return pair(option, format!("batch={given}"));
        };
        let shapes = typelift::shapes(self.model()?);
        match shapes.symbols.iter().find(|symbol| symbol.axis() == format!("{name}[0]")) {
            None if option == "--set-length" => {
                pair("--set-shape", format!("{name}=[{}]", [&[given.to_owned()], dims.get(1..)?].concat().join(",")))
            }
            symbol => pair(option, format!("{}={given}", symbol.map_or("batch", |symbol| &symbol.name))),
        }
    }

    /// Writes a list once for each of its values: `--for cpu --for gpu` for `MULTI:CPU,GPU`.
    fn repeated(&self, verb: &Command, option: &str, list: &str) -> Option<Vec<String>> {
        let list =
            list.split_once(':').filter(|(first, _)| first.chars().all(char::is_uppercase)).map_or(list, |it| it.1);
        // A comma in brackets is part of a shape.
        let mut depth = 0;
        let values = list.split(|letter| {
            depth += i32::from(letter == '[') - i32::from(letter == ']');
            letter == ',' && depth == 0
        });
        let values: Vec<_> = values.map(str::trim).filter(|value| value.parse::<f64>().is_err()).collect();
        let values = Some(values).filter(|values| values.len() > 1)?;
        let words: Option<Vec<_>> = values.iter().map(|value| self.fitted(verb, option, value)).collect();
        let words = words?.concat();
        refused(self.program, verb, &words).is_none().then_some(words)
    }

    /// A command with everything that was typed and has a meaning there.
    fn line(&self, meant: &str) -> String {
        let is_typed = self.verb.is_some_and(|verb| verb.get_name() == meant) && !self.models().is_empty();
        let example = EXAMPLES.iter().find(|(verb, ..)| *verb == meant && !(is_typed && meant == "verify"));
        let meant = example.map_or(meant, |(_, example, _)| example);
        let mut words = split(meant);
        if let Some(verb) = self.program.find_subcommand(&words[0]) {
            self.prepare(&mut words);
            // An option may belong to one that follows.
            for (name, value) in self.options().chain(self.options()) {
                self.carry(verb, name, value, &mut words);
            }
            // `quantize MODEL.xml int4`.
            for word in self.rest() {
                let option = words.get(1).filter(|option| option.starts_with("--"));
                if let Some(new) = option.and_then(|option| self.fitted(verb, option, word)).filter(|_| words.len() > 2)
                {
                    words.splice(1..3, new);
                }
            }
            self.fill(meant, &mut words);
            let reads = verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
            let is_given = words.iter().any(|word| ["MODEL.xml", "BEFORE.xml", "--list-rules"].contains(&&**word));
            if reads.filter(|name| name.ends_with(".xml")).count() > 0 && !is_given {
                let more = ["AFTER.xml"].into_iter().filter(|_| verb.get_name() == "verify" && self.models().len() > 1);
                words.extend(["MODEL.xml"].into_iter().chain(more).map(str::to_owned));
            }
            let is_done = words.iter().any(|word| DONE.contains(&&**word));
            let writes = (["convert", "rewrite"].contains(&verb.get_name()) || is_fix(&words)) && !is_done;
            let takes = argument(verb, "--output").is_some() && (verb.get_name() != "check" || is_fix(&words));
            if !words.contains(&"-o".to_owned()) && (writes || takes && self.output().is_some()) {
                words.extend(["-o".to_owned(), "OUT.xml".to_owned()]);
            }
        }
        let models = self.models();
        for (place, given) in [
            ("MODEL.xml", models.first()),
            ("BEFORE.xml", models.first()),
            ("AFTER.xml", models.get(1)),
            ("OUT.xml", self.output().as_ref()),
        ] {
            if let (Some(word), Some(given)) = (words.iter_mut().find(|word| *word == place), given) {
                *word = (*given).to_owned();
            }
        }
        format!("typelift {}", shown(&words))
    }

    /// Adds an option that was typed to a command, if it has a meaning there, or replaces its value.
    fn carry(&self, verb: &Command, name: &str, value: Option<&str>, words: &mut Vec<String>) {
        if is_off(value) || is_output(name) || is_model_option(name) {
            return;
        }
        let near = || {
            let (dashed, names) = (dashed(name), || verb.get_arguments().filter_map(Arg::get_long));
            let long = dashed.strip_prefix("--")?;
            let near = || typelift::near(long, names()).filter(|near| is_slip(long, near));
            within(name, names()).or_else(near).map(|near| format!("--{near}"))
        };
        let own = self.own(verb, name).or_else(near);
        let Some(new) = own.and_then(|own| self.with_value(verb, &own, value)) else { return };
        if words.windows(new.len()).any(|known| known == new) {
            return;
        }
        let known = words.iter().position(|word| *word == new[0]).filter(|&at| at + 1 < words.len());
        let known = known.filter(|_| new.len() > 1);
        match known.map(|at| (at, ranged(&words[at + 1], &new[1]))) {
            Some((at, Some(range))) => words[at + 1] = range,
            // The value of a row is an example.
            Some((at, None)) if at == 1 && value.is_some() || !is_repeatable(verb, &new[0]) => {
                words.splice(at..at + 2, new);
            }
            _ => {
                let all: Vec<_> = words[1..].iter().filter(|word| !is_xml(word)).chain(&new).cloned().collect();
                let bad = [ErrorKind::ArgumentConflict, ErrorKind::UnknownArgument, ErrorKind::MissingRequiredArgument];
                if refused(self.program, verb, &all).is_none_or(|kind| !bad.contains(&kind)) {
                    words.extend(new);
                }
            }
        }
    }

    /// The words for an option of a command: with the value that was typed, or the one that it stands for.
    fn with_value(&self, verb: &Command, own: &str, value: Option<&str>) -> Option<Vec<String>> {
        let whole = split(own);
        let is_whole = valued(verb, &whole[0]) == whole[0] || whole.get(1).is_some_and(|value| !has_place(value));
        value.and_then(|value| self.fitted(verb, own, value)).or(Some(whole).filter(|_| is_whole))
    }

    /// A statement for all work before an input: channels are reversed, then the mean is subtracted.
    fn prepare(&self, words: &mut [String]) {
        const STEPS: [&str; 3] = ["Gather", "Subtract", "Divide"];
        let Some(statement) = words.iter_mut().find(|word| word.starts_with("before NAME : ")) else { return };
        let steps = self.options().filter_map(|(name, value)| {
            let meant = meanings(name).into_iter().find(|meant| meant.contains("'before NAME : "))?;
            Some((split(meant).pop()?, value.unwrap_or_default()))
        });
        let mut steps: Vec<_> = steps.collect();
        steps.sort_by_key(|(step, _)| STEPS.iter().position(|name| step.contains(name)));
        if steps.is_empty() {
            steps.push((statement.clone(), ""));
        }
        let mut text = "_".to_owned();
        for (step, value) in steps {
            let (given, numbers) = value.split_once(['[', '(']).unwrap_or(("", value));
            let numbers: Vec<_> = numbers.trim_end_matches([']', ')']).split(',').filter(|it| !it.is_empty()).collect();
            let size = numbers.len().max(3).to_string();
            let input = self.input(given, |dims| dims.contains(&size));
            let (name, dims) =
                input.unwrap_or_else(|| ("NAME".to_owned(), vec!["1".into(), size.clone(), "1".into(), "1".into()]));
            let axis = dims.iter().position(|dim| *dim == size).unwrap_or(1);
            let ones: Vec<_> = (0..dims.len()).map(|at| if at == axis { &*size } else { "1" }).collect();
            let number = match &numbers[..] {
                [] => format!("reshape([R, G, B], [{}])", ones.join(", ")),
                [number] => (*number).to_owned(),
                _ => format!("reshape([{}], [{}])", numbers.join(","), ones.join(", ")),
            };
            let step =
                step.replace("before NAME : ", "").replace("VALUE", &number).replace(", 1)", &format!(", {axis})"));
            text = step.replace('_', &text);
            *statement = format!("before {} : ", quoted(&name));
        }
        statement.push_str(&text);
    }

    /// Replaces places in a command by the words that were typed, and by the names of the model.
    fn fill(&self, meant: &str, words: &mut [String]) {
        let is_unknown =
            |name: &str| meanings(name).is_empty() && !self.program.get_subcommands().any(|verb| has(verb, name));
        let values = self.options().filter(|(name, _)| meanings(name).contains(&meant) || is_unknown(name));
        let values = values.filter_map(|(_, value)| value).flat_map(|value| value.split(['=', '>', ',']));
        let mut typed = self
            .rest()
            .flat_map(|word| word.split(['=', '>']))
            .chain(values.map(|value| value.trim_end_matches(['-', ' '])))
            .map(str::to_owned);
        let end = |names: [&str; 3]| {
            names.iter().find_map(|name| Some(self.value_of(name)?.split([':', '[']).next()?.to_owned()))
        };
        let first = end(["--inputs", "--input", "--input-names"]);
        let last = end(["--outputs", "--output", "--output-names"]);
        let own = |option: &str| self.ends(option).into_iter().next().map(|(name, _)| name);
        let named = self.options().map(|(name, _)| name).find(|name| name.ends_with("names"));
        let mut layer = None;
        for word in words.iter_mut().skip(1).filter(|word| !is_xml(word)) {
            for place in PLACES {
                let mut parts = word.split(|letter: char| !letter.is_ascii_alphanumeric());
                if !parts.any(|part| part == place) {
                    continue;
                }
                let given = match place {
                    "FROM" => first.clone().or_else(|| typed.next()).or_else(|| own("").filter(|_| last.is_some())),
                    "UNTIL" => {
                        last.clone().or_else(|| typed.next()).or_else(|| own("output").filter(|_| first.is_some()))
                    }
                    "LAYOUT" => self.layout("", self.others().find(|word| word.len() == 4).unwrap_or("NHWC")),
                    "LENGTH" => self.value_of("--dim_param").map(str::to_owned),
                    "N" => self.value_of("--dim_value").map(str::to_owned).or_else(|| typed.next()),
                    "DEVICE" => Some("cpu".to_owned()),
                    "SHAPE" => typed.next().map(|dims| format!("[{}]", dims.trim_matches(['[', ']']))),
                    "OLD" if named.is_some() => own(named.unwrap_or_default()),
                    "NAME" => typed.next().or_else(|| own(word)),
                    "TENSOR" => typed.next().or_else(|| self.before(layer.as_deref()?)),
                    _ => typed.next(),
                };
                layer = given.clone().filter(|_| place == "LAYER").or(layer);
                if let Some(name) = given {
                    let place = if place == "LAYOUT" { "NAME=LAYOUT" } else { place };
                    *word = word.replacen(place, &if word.contains(' ') { quoted(&name) } else { name }, 1);
                }
            }
        }
    }

    /// The name of what a layer computes from: of a tensor that can replace it, if there is one.
    fn before(&self, layer: &str) -> Option<String> {
        let graph = self.model()?.graph();
        let own = graph.find(layer).ok()?;
        let port = |id: LayerId| graph.layer(id)?.outputs().first().map(|port| port.tensor_type());
        let before: Vec<_> = graph.producers(own).into_iter().flatten().map(|output| output.layer).collect();
        let same = before.iter().copied().find(|id| port(*id) == port(own)).or(before.first().copied())?;
        Some(graph.layer(same)?.name().to_owned())
    }

    /// Formats a row of a table: a command that does the same, or advice.
    fn said(&self, meant: &str) -> String {
        let first = meant.split(' ').next().unwrap_or_default();
        let is_command = ["MODEL.xml", "--version"].contains(&first) || self.program.find_subcommand(first).is_some();
        match meant.split_once(" | ") {
            _ if !is_command => meant.to_owned(),
            Some((meant, next)) => format!("`{} | {next}` does that", self.line(meant)),
            None => format!("`{}` does that", self.line(meant)),
        }
    }

    /// The tip to write an option of ours, alone or in the whole line if there are more options of other programs.
    fn written(&self, verb: &Command, given: &str, meant: &str) -> String {
        let option = meant.split(' ').next().unwrap_or_default();
        if valued(verb, option) == option {
            let words = ["typelift", verb.get_name(), "a.xml", "-o", "o.xml", option];
            let error = self.program.clone().try_get_matches_from(words).err();
            let missing = error.and_then(|error| match error.get(ContextKind::InvalidArg)? {
                ContextValue::Strings(missing) => missing.iter().find(|arg| arg.contains("--")).map(|arg| plain(arg)),
                _ => None,
            });
            if let Some(needed) = missing.filter(|needed| !self.options().any(|(name, _)| needed.starts_with(name))) {
                return format!("leave `{given}` out: `{option}` belongs to `{needed}`");
            }
        }
        match self.with_value(verb, meant, self.value_of(given)) {
            Some(_) if self.has_others(verb, given) => format!("write `{}`", self.line(verb.get_name())),
            Some(words) => format!("write `{}`", shown(&words)),
            None => format!("write `{}`", valued(verb, &meant.replace("DEVICE", "cpu"))),
        }
    }

    /// True if there are more options of other programs.
    fn has_others(&self, verb: &Command, given: &str) -> bool {
        self.options().any(|(name, _)| argument(verb, name).is_none() && name != given)
    }

    /// The meaning of an option of this name here, or in another command.
    fn meaning(&self, verb: &Command, given: &str, name: &str) -> Option<String> {
        let is_here = |(owner, names, _): &&(&str, &str, &str)| *owner == verb.get_name() && has_word(names, name);
        if let Some((.., meant)) = ELSEWHERE.iter().find(is_here) {
            return Some(self.said(meant));
        }
        let is_report = ["--log", "--report"].contains(&name) || is_output(name);
        if is_report && !has(verb, "--output") && verb.get_name() != "explain" {
            return Some("the answer goes to standard output: write `> FILE`".to_owned());
        }
        if argument(verb, given).is_some() {
            return Some(format!("the command comes first: `{}`", self.line(verb.get_name())));
        }
        if let Some(meant) = self.own(verb, name) {
            return Some(match self.output().filter(|_| meant == "--in-place") {
                Some(_) => format!("leave `{given}` out: -o replaces a file that is there"),
                None => self.written(verb, given, &meant),
            });
        }
        let (meanings, long) = (meanings(name), name.trim_start_matches('-'));
        let values = verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
        let is_positional = values.filter(|value| value.split('_').any(|word| word == long.to_uppercase())).count() > 0;
        if is_model_option(name) || is_positional {
            return Some(format!("give it without `{given}`: `{}`", self.line(verb.get_name())));
        }
        if let Some(meant) = meanings.iter().find(|meant| !meant.starts_with("--")) {
            return Some(self.said(meant));
        }
        let others = || self.program.get_subcommands().filter(|other| !other.is_hide_set());
        // The same letter means other things elsewhere.
        let is_long = name.starts_with("--");
        let having = others().filter(|other| is_long && given.starts_with("--") && has(other, name));
        let having: Vec<_> = having.map(Command::get_name).collect();
        if let Some(other) = having.first() {
            let is_whole = self.value_of(given).is_some() || valued(self.program.find_subcommand(other)?, name) == name;
            return Some(match having.len() {
                1 if is_whole => format!("`{name}` is an option of {other}: `{}`", self.line(other)),
                _ => format!("`{name}` is an option of {}", having.join(", ")),
            });
        }
        if let Some(set) = library::get(long) {
            return Some(self.said(&format!("rewrite --use {}", set.name)));
        }
        let elsewhere = meanings.into_iter().find_map(|meant| Some((others().find(|other| has(other, meant))?, meant)));
        let (other, meant) = elsewhere.filter(|_| is_long)?;
        let option = valued(other, meant);
        let is_alone = refused(self.program, other, &split(&option)) != Some(ErrorKind::MissingRequiredArgument);
        Some(self.said(&format!("{} {option}", if is_alone { other.get_name() } else { COMPRESS })))
    }

    /// The command for a program that converts: what the first known option belongs to.
    fn conversion(&self) -> Option<&'static str> {
        let convert = self.program.find_subcommand("convert")?;
        let options =
            self.options().filter(|(name, value)| !is_output(name) && !is_model_option(name) && !is_off(*value));
        options.map(|(name, _)| name).find_map(|name| {
            let statement = meanings(name).into_iter().find(|meant| meant.starts_with("rewrite "));
            self.own(convert, name).filter(|own| !own.starts_with("--for")).map(|_| "convert").or(statement)
        })
    }
}

/// Meanings of a word of other programs; a word that begins with a dash is an option.
fn meanings(word: &str) -> Vec<&'static str> {
    let whole = dashed(word);
    let long = whole.trim_start_matches("--");
    let exact = MEANINGS.iter().filter(|(_, words)| has_word(words, &whole));
    let other = MEANINGS.iter().filter(|(_, words)| whole != long && has_word(words, long));
    let rows = exact.chain(other).map(|(meanings, _)| *meanings);
    rows.flat_map(|row| row.split(if row.contains('`') { '\0' } else { '|' })).collect()
}

/// A word in small letters with dashes between its parts: `--save-engine` for `--saveEngine` and `--shape` for `-shape`.
fn dashed(name: &str) -> String {
    let is_short = name.starts_with('-') && name.len() == 2;
    // `-O` is not `-o`.
    if is_short {
        return name.to_owned();
    }
    let is_long = name.starts_with('-') && !name.starts_with("--");
    let mut words = String::from(if is_long { "-" } else { "" });
    let mut is_small = false;
    for letter in name.chars() {
        words.extend((is_small && letter.is_uppercase()).then_some('-'));
        words.push(if letter == '_' { '-' } else { letter.to_ascii_lowercase() });
        is_small = letter.is_lowercase();
    }
    words
}

fn has_word(words: &str, word: &str) -> bool {
    words.split(' ').any(|known| known == word)
}

fn is_xml(word: &str) -> bool {
    Path::new(word).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml"))
}

fn is_model_option(name: &str) -> bool {
    MODEL.contains(&&*dashed(name))
}

fn is_output(name: &str) -> bool {
    ["-o", "--output"].contains(&&*dashed(name)) || meanings(name).first() == Some(&"--output")
}

fn is_fix(words: &[String]) -> bool {
    words.iter().any(|word| word == "--fix")
}

fn is_repeatable(verb: &Command, option: &str) -> bool {
    argument(verb, option).is_some_and(|option| matches!(option.get_action(), clap::ArgAction::Append))
}

/// A switch of other programs may have a value that turns it off: `--fp16=False`.
fn is_off(value: Option<&str>) -> bool {
    value.is_some_and(|value| ["false", "no", "off"].contains(&&*value.to_lowercase()))
}

/// `NAME=[1..8,3]` for two shapes of one input, such as the smallest and the largest.
fn ranged(one: &str, other: &str) -> Option<String> {
    let (name, dims) = one.strip_suffix(']')?.split_once("=[")?;
    let others = other.strip_suffix(']')?.strip_prefix(name)?.strip_prefix("=[")?;
    let dims = dims.split(',').zip(others.split(',')).map(|(one, other)| match one.split("..").next() {
        _ if one == other => one.to_owned(),
        least => format!("{}..{other}", least.unwrap_or_default()),
    });
    Some(format!("{name}=[{}]", dims.collect::<Vec<_>>().join(",")))
}

/// The other of the layouts with channels first and last.
fn exchanged(layout: &str) -> String {
    let (first, rest) = layout.split_at(layout.len().min(1));
    let last = rest.strip_suffix('C').map(|rest| format!("{first}C{rest}"));
    rest.strip_prefix('C').map(|rest| format!("{first}{rest}C")).or(last).unwrap_or_else(|| layout.to_owned())
}

/// Splits a row of a table at blanks outside of quotes.
fn split(line: &str) -> Vec<String> {
    let parts = line.split('\'').enumerate();
    let words = parts.flat_map(|(at, part)| if at % 2 == 1 { vec![part] } else { part.split(' ').collect() });
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// True if a word is a place for what was not typed, such as `NAME=SHAPE`.
fn has_place(word: &str) -> bool {
    let mut parts = word.split(|letter: char| !letter.is_ascii_alphanumeric());
    let is_place = |part: &str| !part.is_empty() && part.chars().all(|letter| letter.is_ascii_uppercase());
    !word.contains(['[', ':', ' ']) && parts.any(is_place)
}

/// Words as they are typed.
fn shown(words: &[String]) -> String {
    let is_raw = |word: &str| word.starts_with('-') || has_place(word);
    let word = |word: &String| if is_raw(word) { word.clone() } else { shell_word(word).into_owned() };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// A name as a statement takes it.
fn quoted(name: &str) -> String {
    let is_plain = name.chars().all(|letter| letter.is_alphanumeric() || "_./:".contains(letter));
    if is_plain { name.to_owned() } else { format!("\"{name}\"") }
}

/// The option of a command that has this name.
fn argument<'c>(verb: &'c Command, option: &str) -> Option<&'c Arg> {
    let is_short = |letter: char| option.strip_prefix('-').is_some_and(|rest| rest.chars().eq([letter]));
    let is_long = |long: &str| option.strip_prefix("--") == Some(long);
    verb.get_arguments().find(|arg| arg.get_short().is_some_and(is_short) || arg.get_long().is_some_and(is_long))
}

fn has(verb: &Command, option: &str) -> bool {
    argument(verb, option.split(' ').next().unwrap_or_default()).is_some()
}

/// Adds the word for its value to an option that stands alone.
fn valued(verb: &Command, option: &str) -> String {
    let value = argument(verb, option).filter(|arg| arg.get_action().takes_values());
    let value = value.and_then(|arg| arg.get_value_names()?.first()).map(|value| plain(value));
    value.map_or_else(|| option.to_owned(), |value| format!("{option} {value}"))
}

/// Why these options of a command are no complete command line, if they are not. The models and the output are added.
fn refused(program: &Command, verb: &Command, options: &[String]) -> Option<ErrorKind> {
    let models: &[&str] = match verb.get_name() {
        "diff" | "verify" => &["a.xml", "b.xml"],
        "why" => &["a.xml", "x"],
        _ => &["a.xml"],
    };
    let output: &[&str] = if ["convert", "rewrite"].contains(&verb.get_name()) { &["-o", "o.xml"] } else { &[] };
    let words = [&["typelift", verb.get_name()], models, output].concat();
    let words = words.into_iter().map(OsString::from);
    program
        .clone()
        .try_get_matches_from(words.chain(options.iter().map(OsString::from)))
        .err()
        .map(|error| error.kind())
}

fn takes(program: &Command, verb: &Command, option: &str, value: &str) -> bool {
    let bad = [ErrorKind::InvalidValue, ErrorKind::ValueValidation, ErrorKind::UnknownArgument];
    let words = ["typelift", verb.get_name(), option, value];
    let result = program.clone().try_get_matches_from(words);
    valued(verb, option) != option && result.err().is_none_or(|error| !bad.contains(&error.kind()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Command lines with one word of another program each.
    fn lines(program: &Command) -> Vec<Vec<&str>> {
        let words = MEANINGS.iter().flat_map(|row| row.1.split(' '));
        let others = ELSEWHERE.iter().flat_map(|row| row.1.split(' ')).chain(MODEL.iter().copied());
        let options = words.clone().chain(others);
        let options: Vec<_> = options.filter(|word| word.starts_with('-')).collect();
        let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
        let lines =
            verbs.flat_map(|verb| options.iter().map(move |&option| vec!["typelift", verb, "model.xml", option]));
        let verbs = words.filter(|word| !word.starts_with('-')).map(|verb| vec!["typelift", verb, "model.xml"]);
        lines.chain(verbs).collect()
    }

    #[test]
    fn words_in_any_script_are_read() {
        for word in ["–o", "“cut norm”", "é~1", "", "-", "="] {
            let line = ["typelift", word, "model.xml", word].map(OsString::from);
            assert!(of_habit(&line).is_none_or(|advice| !advice.is_empty()), "{word}");
        }
        let line =
            ["typelift", "rewrite", "a.xml", "-e", "“cut", "norm”", "—quiet", "–o", "b c.xml"].map(OsString::from);
        let advice = of_habit(&line).unwrap().replace('"', "'");
        assert!(advice.ends_with("`typelift rewrite a.xml -e 'cut norm' --quiet -o 'b c.xml'`"));
    }

    #[test]
    fn words_of_a_name_or_its_description_lead_to_a_set_of_rules() {
        assert_eq!(near_set("fuse-attention"), Some("fuse-sdpa"));
        assert_eq!(near_set("fuse-geloo"), Some("fuse-gelu"));
        assert_eq!(near_set("quux"), None);
    }

    #[test]
    fn every_tip_can_be_followed() {
        let mut program = whole_command();
        program.build();
        let mut wrong = Vec::new();
        for line in lines(&program) {
            let Err(error) = program.clone().try_get_matches_from(&line) else { continue };
            if ![ErrorKind::UnknownArgument, ErrorKind::InvalidSubcommand].contains(&error.kind()) {
                continue;
            }
            let arguments: Vec<_> = line.iter().map(OsString::from).collect();
            let Some(tip) = tip(&error, &program, &arguments) else { continue };
            let verb = program.find_subcommand(line[1]);
            let option = tip.strip_prefix("write `--").and_then(|rest| rest.split(['`', ' ']).next());
            if option.is_some_and(|option| !verb.is_some_and(|verb| has(verb, &format!("--{option}")))) {
                wrong.push(format!("{line:?}: {tip}"));
            }
            let command = tip.strip_prefix('`').and_then(|rest| rest.strip_suffix("` does that"));
            // Another program may read the answer.
            let own = command.unwrap_or_default().split(" | ").next().unwrap_or_default();
            let words: Vec<_> = split(own).into_iter().map(OsString::from).collect();
            // A place is no value.
            let is_read = is_overview(&words);
            let fault = program.clone().try_get_matches_from(&words).err().map(|error| error.kind());
            let is_place = [Some(ErrorKind::InvalidValue), Some(ErrorKind::ValueValidation), None].contains(&fault);
            if command.is_some() && !is_read && !is_place && fault != Some(ErrorKind::DisplayVersion) {
                wrong.push(format!("{line:?}: {tip}"));
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}
