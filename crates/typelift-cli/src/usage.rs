//! Suggestions for invalid command lines.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command, Error};
use typelift::findings::shell_word;
use typelift::ops::Release;
use typelift::rewrite::library;

use crate::failure::Failure;
use crate::input::element_type;
use crate::not_a_model;
use crate::whole_command;

/// Commands here, or advice, each with the commands of other programs that mean the same.
const VERBS: &[(&str, &[&str])] = &[
    ("MODEL.xml", &["about", "describe", "info", "inputs", "inspect", "outputs", "summary"]),
    ("check", &["diagnose", "doctor", "errors", "lint", "scan", "status", "validate"]),
    ("check --for DEVICE", &["compile", "query-model", "supported", "support"]),
    ("convert", &["align", "clone", "copy", "cp", "lower", "save", "upgrade"]),
    ("convert --canonical", &["format", "sort"]),
    (
        "convert --compress f16",
        &["shrink", "minify", "f16", "to-f16", "mixed-precision", "precision", "compress", "float16", "fp16", "half"],
    ),
    ("convert --compress bf16", &["bf16", "bfloat16"]),
    ("convert --weights compact", &["compact"]),
    ("convert --decompress", &["decompress"]),
    ("convert --dequantize", &["dequantize"]),
    ("convert --input-layout NAME=NCHW:NHWC", &["nchw", "nhwc", "set-layout", "layout"]),
    ("convert --quantize int4_sym", &["compress_weights", "int4"]),
    ("convert --quantize int8_sym", &["i8", "int8", "quantize", "u8", "uint8"]),
    ("convert --set-shape NAME=SHAPE", &["dims", "dynamic", "set-input-shape", "static", "reshape", "set-shape"]),
    ("convert --set-length batch=N", &["batch", "set-batch", "batch-size"]),
    ("convert --quantize nf4", &["nf4"]),
    ("convert --input-type NAME=TYPE", &["dtype", "set-type"]),
    ("convert --strip-weights zero", &["anonymize", "strip"]),
    ("convert --target RELEASE", &["downgrade", "migrate"]),
    ("convert --types FROM=TO", &["cast"]),
    ("diff", &["eq", "same", "cmp", "compare"]),
    ("explain", &["codes"]),
    ("infer", &["shape_inference", "shapes", "types"]),
    ("promote", &["result_type"]),
    ("reduce", &["bisect", "debug", "delta", "minimize"]),
    ("rewrite --list-rules", &["list-passes", "list-rules", "passes", "rules"]),
    ("rewrite --rules FILE", &["apply", "patch"]),
    ("rewrite --use NAME", &["pass", "use"]),
    ("rewrite --use all", &["clean", "dce", "cleanup", "fuse", "onnxsim", "optimize", "sanitize", "simplify"]),
    ("rewrite --use common-subexpressions", &["cse", "dedup", "deduplicate"]),
    ("rewrite --use constant-folding", &["constant-fold", "fold", "fold-constants"]),
    ("rewrite -e 'PATTERN => REPLACEMENT'", &["edit", "modify", "replace", "surgeon", "transform"]),
    ("rewrite -e 'add output NAME = TENSOR'", &["add-output", "add-outputs", "expose"]),
    ("rewrite -e 'after NAME : Relu(_)'", &["add-node", "insert"]),
    ("rewrite -e 'cut [A] .. [B]'", &["crop", "cut", "extract", "isolate", "prune", "split", "subgraph"]),
    ("rewrite -e 'freeze NAME = VALUE'", &["freeze"]),
    ("rewrite -e 'join OTHER.xml'", &["concat", "join", "merge"]),
    ("rewrite -e 'lora ADAPTER.safetensors'", &["add-lora", "apply-lora", "peft", "lora"]),
    ("rewrite -e 'redirect LAYER -> TENSOR'", &["delete", "delete-node", "remove", "remove-node"]),
    ("rewrite -e 'inline IF'", &["inline"]),
    ("rewrite -e 'before NAME : Divide(_, 255)'", &["mean", "normalize", "ppp", "preprocess", "scale"]),
    ("rewrite -e 'after NAME : Transpose(_, [0, 2, 3, 1])'", &["transpose"]),
    ("rewrite -e 'rename OLD NEW'", &["rename"]),
    ("rewrite -e 'set CONSTANT = VALUE'", &["set"]),
    ("rewrite -e 'stateful INPUT -> OUTPUT'", &["kv-cache", "low-latency", "make-stateful", "stateful"]),
    ("show", &["json", "yaml", "text", "cat", "display", "dump", "layers", "list", "ls", "nodes", "print", "tree"]),
    ("show --format dot", &["dot", "svg", "png"]),
    ("show --info", &["metadata"]),
    ("show --only TYPE", &["find", "grep", "search"]),
    ("stats", &["analyze", "ops", "count", "flops", "macs", "params", "profile", "size", "weights"]),
    ("verify", &["accuracy", "accuracy-check", "compare-outputs", "equal", "evaluate", "test"]),
    ("view", &["gui", "html", "ui", "web", "browse", "draw", "graph", "netron", "open", "plot", "visualize"]),
    ("why", &["blame", "trace"]),
    ("--version", &["version"]),
    (FIX, &["fix", "repair"]),
    (RUN, &["bench", "benchmark", "benchmark_app", "infer-request", "predict", "run", "serve", "trtexec"]),
    (
        OVC,
        &["convert_model", "export", "hub", "import", "mo", "optimum", "optimum-cli", "ovc", "paddle2onnx", "tf2onnx"],
    ),
    (DATA, &["awq", "calibrate", "gptq", "pot", "ptq", "qat"]),
    (NO_LESS, &["distill", "sparsify"]),
    (DEVICES, &["available-devices", "devices", "list-devices", "query-device"]),
    (HERE, &["config", "env", "history", "init", "install", "log", "plugin", "template", "uninstall", "update"]),
    ("completions", &["autocomplete", "completion"]),
];

/// Programs whose own command follows.
const PROGRAMS: &[&str] = &["debug", "inspect", "nncf", "onnx", "openvino", "polygraphy", "surgeon", "typelift"];

/// Advice for commands that Typelift does not have.
const DEVICES: &str =
    "`typelift verify --device NAME A.xml B.xml` runs on a device, and names those of OpenVINO if it has no such one";
const NO_LESS: &str = "Typelift removes no weights: --quantize and --compress make them smaller";
const FIX: &str = "`typelift convert` inserts Converts, and `typelift check --fix` corrects the text of the file";
const RUN: &str = "Typelift does not run models: `benchmark_app` of OpenVINO measures speed, and `typelift verify A.xml B.xml` compares two models with an installed OpenVINO";
const OVC: &str =
    "`ovc` of OpenVINO and `optimum-cli export openvino` convert other formats to IR, which Typelift reads";
const HERE: &str = "Typelift has no plugins, projects or updates of its own: `typelift -h` lists the commands";

/// Options here, or advice, each with the options of other programs that mean the same. A `_` in a name is written as
/// `-`. The first row counts whose option the command has. A row that begins with a command counts where the command
/// has no other, and advice counts everywhere.
const OPTIONS: &[(&str, &[&str])] = &[
    ("--align pytorch", &["--pytorch", "--torch"]),
    ("--align off", &["--no-align"]),
    ("--rules pytorch", &["--pytorch", "--torch"]),
    ("--eliminate-converts", &["--no-converts", "--remove-converts"]),
    ("`typelift convert` inserts Converts without an option", &["--add-converts", "--insert-converts"]),
    ("write `| head -20` for the first lines", &["--head", "--limit", "--max-layers"]),
    ("--all", &["--full", "--top", "--verbose"]),
    ("--allow", &["--disable", "--exclude", "--ignore", "--skip"]),
    ("--around", &["--center", "--layer", "--name", "--node"]),
    ("--at NAME=N", &["--batch", "--input-shape", "--set-length", "--set-shape", "--shape"]),
    ("--atol", &["--max-diff", "--abs"]),
    ("--backup", &["--backup-mode"]),
    ("--bin", &["--weights", "--weights-file"]),
    ("--weights link", &["--share-weights"]),
    ("--color never", &["--no-color"]),
    ("--compress", &["-c"]),
    ("--compress bf16", &["--bf16"]),
    (
        "--compress f16",
        &["--best", "--compress-to-fp16", "--convert-to-fp16", "--data-type", "--fp16", "--half", "--precision"],
    ),
    ("--config KEY=VALUE", &["--load-config", "--property"]),
    ("--config NUM_STREAMS=N", &["--nstreams", "--streams"]),
    ("--config INFERENCE_NUM_THREADS=N", &["--num-threads", "--threads", "--nthreads"]),
    ("--deny warnings", &["--max-warnings", "--strict", "--warn", "--werror", "-W"]),
    ("--device", &["--target-device", "-d"]),
    ("--dry-run", &["--check-only", "--dryrun", "--plan", "-n"]),
    ("--expect", &["--golden", "--load-outputs", "--reference"]),
    ("--for", &["--precision"]),
    ("--device CPU", &["--cpu"]),
    ("--device GPU", &["--gpu"]),
    ("--device NPU", &["--npu"]),
    ("--for cpu", &["--cpu"]),
    ("--for gpu", &["--gpu"]),
    ("--for npu", &["--npu"]),
    ("--for f16", &["--fp16", "--half"]),
    ("--for bf16", &["--bf16"]),
    ("--for DEVICE", &["--device", "--target-device", "-d"]),
    ("--changed", &["--since", "--staged"]),
    ("--diff", &["--check-only", "--dry-run", "--dryrun", "--plan", "-n"]),
    ("--format", &["--fmt", "--output-format"]),
    ("--format dot", &["--dot", "--graph"]),
    ("--format github", &["--github"]),
    ("--format json", &["--csv", "--json", "--yaml"]),
    ("--format sarif", &["--sarif"]),
    ("--hint TYPE", &["--infer-precision", "--precision"]),
    ("--hint f16", &["--fp16", "--half"]),
    ("--hint bf16", &["--bf16"]),
    ("--in-place", &["--no-backup", "--yes", "-y", "--force", "--inplace", "--overwrite", "-i"]),
    ("--input-layout NAME=NCHW:NHWC", &["--nchw", "--nhwc", "--layout", "--source-layout", "--target-layout"]),
    ("--input-type NAME=TYPE", &["--input-precision", "--inputioformats", "--ip", "--iop"]),
    ("--output-type NAME=TYPE", &["--op", "--output-precision", "--outputioformats"]),
    ("--inputs FILE.npz", &["--data", "--input-data", "--load-inputs", "--val-range", "-i"]),
    ("--jobs", &["--num-workers", "--parallel", "--threads", "--workers"]),
    (
        "--keep",
        &[
            "--fp32-layers",
            "--keep-fp32",
            "--exclude",
            "--ignore",
            "--ignored",
            "--ignored-scope",
            "--layerprecisions",
            "--skip",
        ],
    ),
    (
        "--output",
        &[
            "--dest",
            "--destination",
            "--dst",
            "--out-dir",
            "--out-file",
            "--outdir",
            "--outfile",
            "--out",
            "--output-dir",
            "--output-folder",
            "--output-model",
            "--save",
            "--save-engine",
            "--model-name",
            "-O",
        ],
    ),
    ("--quantize MODE", &["--mode", "--weight-format"]),
    ("--quantize int4_sym", &["--int4"]),
    ("--quantize int8_sym", &["--int8"]),
    ("--quiet", &["--no-warn", "--no-warnings"]),
    ("--quiet", &["--errors-only", "--level", "--log-level", "--severity", "--silent"]),
    ("--rtol", &["--max-relative", "--rel", "--threshold", "--tol", "--tolerance"]),
    ("--rules", &["--framework"]),
    ("--rules FILE", &["-f", "-r"]),
    ("--samples N", &["--iterations", "--niter", "--repeat"]),
    ("--set-length batch=N", &["--batch", "--batch-size", "-b"]),
    ("--set-shape 'NAME=[1..8,…]'", &["--maxshapes", "--minshapes", "--optshapes"]),
    (
        "--set-shape NAME=SHAPE",
        &["--dynamic", "--input", "--input-shape", "--inputs", "--reshape", "--shape", "--shapes", "--static"],
    ),
    ("--shape NAME=SHAPE", &["--data-shape", "--input-shape"]),
    ("--set-shape NAME=SHAPE", &["--height", "--image-size", "--imgsz", "--resolution", "--seq-len", "--width"]),
    ("`--help` lists all options", &["--help-all", "--help-full", "--usage"]),
    ("--statement", &["--e", "--pattern"]),
    ("rewrite -e 'PATTERN => REPLACEMENT'", &["--replace", "--substitute"]),
    ("rewrite -e 'add output NAME = TENSOR'", &["--add-output", "--add-outputs", "--mark-outputs"]),
    (
        "rewrite -e 'before NAME : Divide(_, reshape([R, G, B], [1, 3, 1, 1]))'",
        &["--iscale", "--scale", "--scale-value", "--scale-values"],
    ),
    ("rewrite -e 'before NAME : Gather(_, [2,1,0], 1)'", &["--reverse-channels", "--reverse-input-channels"]),
    (
        "rewrite -e 'before NAME : Subtract(_, reshape([R, G, B], [1, 3, 1, 1]))'",
        &["--imean", "--mean", "--mean-value", "--mean-values"],
    ),
    ("rewrite -e 'cut [A] .. [B]'", &["--cut", "--extract", "--input", "--inputs", "--outputs", "--subgraph"]),
    ("rewrite -e 'freeze NAME = VALUE'", &["--freeze", "--freeze-placeholder-with-value"]),
    ("rewrite -e 'redirect LAYER -> TENSOR'", &["--delete", "--delete-node", "--remove", "--remove-node"]),
    ("rewrite -e 'rename OLD NEW'", &["--input-names", "--output-names", "--rename"]),
    ("rewrite -e 'set CONSTANT = VALUE'", &["--set", "--set-value"]),
    ("rewrite -e 'stateful INPUT -> OUTPUT'", &["--stateful", "--transform"]),
    ("rewrite --list-rules", &["--list", "--list-passes"]),
    ("--target", &["--openvino", "--openvino-version", "--ov", "--release"]),
    ("--target RELEASE", &["--ir-version", "--opset"]),
    ("--types FROM=TO", &["--dtype", "--to", "--type"]),
    ("--only", &["--filter", "--find", "--grep", "--op-type", "--search", "--type"]),
    ("--use", &["--pass"]),
    ("--use all", &["--cleanup", "--fuse", "--optimize", "--simplify"]),
    ("--use constant-folding", &["--fold", "--fold-constants"]),
    ("--verify", &["--val", "--validate"]),
    ("--write-plan FILE", &["-p"]),
    ("diff BEFORE.xml AFTER.xml", &["--compare", "--diff"]),
    ("verify BEFORE.xml AFTER.xml", &["--device", "--rtol", "--tolerance"]),
    (
        STATS,
        &["--by-type", "--flops", "--histogram", "--macs", "--memory", "--ops", "--parameters", "--params", "--size"],
    ),
    (BENCHMARK, &["--api", "--avg-runs", "--dump-profile", "--exec-graph-path", "--latency", "--nireq", "--pc"]),
    (BENCHMARK, &["--perf-counts", "--profile", "--report-type", "--throughput", "--time", "--warmup", "-t"]),
    (DATA, &["--awq", "--calibration", "--dataset", "--gptq", "--lora-correction", "--num-samples", "--preset"]),
    (DATA, &["--scale-estimation", "--sensitivity-metric", "--subset-size"]),
    (EXPORT, &["--library", "--sym", "--task", "--trust-remote-code", "--use-new-frontend"]),
    (NO_LESS, &["--prune", "--sparsity"]),
    (
        "operations of an extension are kept as the file declares them, without the extension",
        &["--custom-ops", "--extension", "--extensions", "--plugins"],
    ),
    (
        "nothing is fused or removed without `typelift rewrite --use`",
        &["--disable-fusing", "--no-optimize", "--skip-fuse-bn", "--skip-optimization", "--toposort"],
    ),
    ("only safe fixes are written; `check` lists others after `perhaps`", &["--unsafe", "--unsafe-fixes"]),
    (
        "all findings are reported: --allow CODE leaves some out, --deny CODE makes some fail",
        &["--exit-zero", "--select"],
    ),
    ("`typelift view` writes a page that needs no server", &["--browse", "--host", "--port"]),
];

/// Advice for options that a command does not have: the command, the options, and what it does or which command has them.
const ELSEWHERE: &[(&str, &[&str], &str)] = &[
    ("check", &["--config"], "there is no file of settings: give options, such as --allow CODE"),
    ("check", &["--log-file", "--output-file", "--report"], "write `--format json > FILE.json`"),
    ("check", &["--rules"], "rewrite --rules FILE"),
    (
        "completions",
        &["--install"],
        "`typelift completions bash` prints the script: write it where your shell looks for it",
    ),
    ("convert", &["--export", "--output-format", "--to-onnx"], "typelift writes OpenVINO IR only"),
    ("diff", &["-o", "--html", "--output", "--png", "--side-by-side", "--view", "--visual"], PAGE),
    ("diff", &["--abs", "--atol", "--rtol", "--tol", "--tolerance"], "verify BEFORE.xml AFTER.xml"),
    ("diff", &["--kind", "--only"], "write `--ignore KIND` for the kinds of changes to leave out"),
    ("diff", &["--values", "--weights"], "`diff` compares the values of constants without an option"),
    ("diff", &["--ignore-weights", "--no-weights"], "diff --ignore constant BEFORE.xml AFTER.xml"),
    ("diff", &["--brief", "--name-only", "--shortstat", "--stat", "--summary", "--unified", "-u", "-w"], STORY),
    ("explain", &["--all", "--list"], "`typelift explain` without a code lists all codes"),
    (
        "reduce",
        &["--check", "--cmd", "--command", "--script"],
        "the command follows `--`, such as `-- python3 check.py {}`",
    ),
    ("reduce", &["--fail-regex", "--regex"], "write `--match REGEX`"),
    ("reduce", &["--mode"], "`reduce` removes layers in every way that keeps the outcome"),
    ("show", &["--inputs", "--outputs", "--summary"], "MODEL.xml"),
    ("show", &["--const", "--data", "--values", "--weights"], "show MODEL.xml NAME --npy FILE.npy"),
    (
        "show",
        &["--attrs", "--consts", "--types", "--display-as", "--ops", "--show", "--tree"],
        "`show` prints each layer with its attributes and types",
    ),
    ("show", &["--bodies", "--body"], "`show` prints each body below its layer"),
    (
        "stats",
        &["--block", "--blocks", "--layers"],
        "`stats` lists blocks; `typelift show --around LAYER MODEL.xml` shows layers",
    ),
    ("stats", &["--order", "--sort"], "`stats` lists the largest first; --all lists all"),
    ("verify", &["--against", "--other", "--with"], "verify BEFORE.xml AFTER.xml"),
    ("verify", &["--save-outputs"], "write `--save-inputs FILE.npz`; outputs are compared, not saved"),
    ("verify", &["--check-error-stat"], "write `--rtol REL` or `--atol ABS`"),
    ("view", &["--before", "--compare", "--diff", "--with"], PAGE),
    ("view", &["--around", "--layer", "--name", "--node", "--only"], "show --around NAME MODEL.xml"),
    ("view", &["--dot", "--format", "--image", "--pdf", "--png", "--svg"], "show --format dot MODEL.xml"),
    ("view", &["--dark", "--theme"], "the page has the colours of the browser, dark or light"),
    ("view", &["--html", "--save"], "write `-o PAGE.html`"),
    ("why", &["--from", "--to"], "write `--path`: it begins where a value is stored, and ends where it is used"),
    ("why", &["--dtype", "--type"], "`why` explains the type without an option; --shape explains lengths"),
];

/// An example of a conversion, for options that belong to one.
const COMPRESS: &str = "convert --compress f16";
const PAGE: &str = "view BEFORE.xml AFTER.xml -o changes.html";
const STORY: &str = "`diff` begins with a summary; `--format json` lists each change";
const STATS: &str = "`typelift stats MODEL.xml` prints weights, operations and MACs without an option";
const BENCHMARK: &str = "`benchmark_app` of OpenVINO measures speed; `typelift stats --ran EXECUTION.xml MODEL.xml` shows what a plugin ran";
const EXPORT: &str = "`optimum-cli export openvino` exports from a framework; typelift changes the .xml that it writes";

/// Options that other programs have for the model, which is given without one.
const MODEL: &[&str] =
    &["--model", "--input-file", "--input-model", "--input-path", "--ir", "--model-path", "--xml", "--onnx", "-m"];

/// Values that are meant for another option: the option, the beginnings of values or `*` and their end, and the option
/// to write or the advice.
const VALUES: &[(&str, &[&str], &str)] = &[
    ("--compress", &["int8", "i8"], "--quantize int8_sym"),
    ("--compress", &["int4"], "--quantize int4_sym"),
    ("--compress", &["u8"], "--quantize int8_asym"),
    ("--compress", &["f32", "fp32", "float32"], "--decompress"),
    ("--compress", &["fp8", "f8"], "f16 and bf16 are stored by --compress; `--quantize mxfp4` stores fewer bits"),
    ("--deny", &["all"], "--deny warnings"),
    (
        "--allow",
        &["all", "error", "note", "warning"],
        "name the codes, such as `--allow stale-port`; --quiet prints errors only",
    ),
    ("--deny", &["note"], "--deny warnings` or `--deny CODE"),
    ("--deny", &["error"], "errors end with status 1 without --deny"),
    ("--for", &["arm", "x86"], "--for cpu"),
    ("--for", &["cuda", "nvidia", "xpu"], "OpenVINO has a plugin for GPUs of Intel: write `--for gpu`"),
    ("--for", &["genai:"], "--for genai:llm"),
    ("--for", &["openvino"], "`typelift check` without --for checks what OpenVINO itself needs"),
    (
        "--for",
        &["int8"],
        "`typelift convert --quantize int8_sym` quantizes, and `typelift verify` compares the results",
    ),
    ("--format", &["csv", "markdown", "md", "table", "yaml"], "--format json"),
    ("--format", &["junit", "xml"], "--format sarif` or `--format json"),
    (
        "--format",
        &["html", "svg"],
        "`typelift view MODEL.xml -o PAGE.html` writes a page, and `typelift view A.xml B.xml -o PAGE.html` one of a diff",
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
    (
        "--quantize",
        &["f8", "fp8"],
        "modes of floats are nf4, fp4 and mxfp4; `--backup fp8_e4m3` is for weights that the mode leaves out",
    ),
    ("--quantize", &["*.txt"], "--quantize @FILE"),
    ("--quantize", &["awq", "gptq"], DATA),
    ("--target", &["cpu"], "--for cpu"),
    ("--target", &["gpu"], "--for gpu"),
    ("--target", &["npu"], "--for npu"),
    ("--rules", &["onnx", "tensorflow", "tf"], "TensorFlow and ONNX promote nothing: operands must have one type"),
    ("--rules", &["np"], "--rules numpy"),
    ("--rules", &["torch"], "--rules pytorch"),
    ("--target", &["latest"], "without --target, a model is written for the newest release"),
    ("--use", &["fuse-all"], "--use all"),
    ("--use", &["fuse-layernorm", "layernorm"], "--use norms"),
    ("--weights", &["*.bin"], "--bin FILE"),
    ("[CODE]", &["*.xml"], "`typelift check MODEL.xml` reports the findings of a model"),
    ("[CODE]", &["all", "e0", "list"], "`typelift explain` lists the codes"),
];

const DATA: &str = "a mode that needs data is of `nncf.compress_weights`; --quantize computes from the weights alone";

/// Further words after the options, which a command does not take: the command, and what to write instead.
const WORDS: &[(&str, &str)] = &[
    ("explain", "give one code; `typelift explain` lists them"),
    ("reduce", "the command follows `--`, such as `-- python3 check.py {}`"),
    ("show", "to select layers, write `--only TYPE` or `--around LAYER`"),
    ("stats", "`typelift show --around LAYER` shows one layer"),
    ("view", "give one model, or two to see what differs"),
    ("why", "give one layer or tensor: `typelift why MODEL.xml LAYER`"),
    ("diff", "give two models"),
    ("verify", "give one model or two; a property is one word, such as `--config KV_CACHE_PRECISION=u8`"),
];

/// Complete command lines, for commands that need more than a model.
const EXAMPLES: &[(&str, &str)] = &[
    ("completions", "completions bash"),
    ("diff", "diff BEFORE.xml AFTER.xml"),
    ("explain", "explain type-mismatch"),
    ("man", "man FOLDER"),
    ("promote", "promote f32 i64"),
    ("reduce", "reduce --finding type-mismatch MODEL.xml -o OUT.xml"),
    ("schema", "schema check"),
    ("verify", "verify BEFORE.xml AFTER.xml"),
    ("why", "why MODEL.xml LAYER"),
];

/// The most options that a suggestion lists.
const FEW: usize = 8;

/// A model without a command asks for an overview.
pub(crate) fn is_overview(arguments: &[OsString]) -> bool {
    arguments.get(1).is_some_and(is_model)
}

fn is_model(word: &OsString) -> bool {
    Path::new(word).extension().is_some_and(|ending| ending.eq_ignore_ascii_case("xml"))
}

/// The failure for a long option after one dash, which would be read as a value of `-o`, or as a request for help: `-out`,
/// `-hint`.
pub(crate) fn of_one_dash(arguments: &[OsString]) -> Option<Failure> {
    let words = arguments.iter().filter_map(|word| word.to_str()).take_while(|word| *word != "--");
    let of_help = |word: &str| word.len() > 2 && (word.starts_with("-h") || word.starts_with("-V"));
    let of_output = |word: &str| {
        let is_other = || OPTIONS[..].iter().any(|(_, others)| others.contains(&&*format!("-{word}")));
        word.starts_with("-o") && !word.contains('=') && (is_other() || word == "-output")
    };
    let word = words.into_iter().find(|word| of_help(word) || of_output(word))?;
    let message = format!("unexpected argument `{word}` found");
    if of_help(word) {
        return Some(Failure::new(message).help(format!("a long option has two dashes: `-{word}`, and help is `-h`")));
    }
    let tip = match is_row("--output", &format!("-{word}")) || word == "-output" {
        true => None,
        false => option_tip(word, &whole_command(), arguments),
    };
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
    let other = || match verb_of(program, arguments) {
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
    match error.kind() {
        ErrorKind::InvalidSubcommand => verb_tip(&text(error, ContextKind::InvalidSubcommand)?, program, arguments),
        ErrorKind::UnknownArgument => {
            let option = text(error, ContextKind::InvalidArg)?;
            option_tip(&whole(&option, arguments), program, arguments)
        }
        ErrorKind::InvalidValue | ErrorKind::ValueValidation => {
            let (option, value) = (text(error, ContextKind::InvalidArg)?, text(error, ContextKind::InvalidValue)?);
            let name = option.split(' ').next()?;
            let number = value.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
            let is_counted = error.to_string().contains("invalid digit");
            let number = Some(number).filter(|number| is_counted && number.parse::<u64>().is_ok());
            let percent = value.strip_suffix('%').and_then(|number| number.parse::<f64>().ok());
            let verb = verb_of(program, arguments);
            let list = verb.and_then(|verb| repeated(program, verb, name, &value));
            let shape = shape_of(&value).filter(|shape| verb.is_some_and(|verb| takes(program, verb, name, shape)));
            let last = value.rsplit('.').next().filter(|last| *last != value).map(str::to_lowercase);
            let last = last.filter(|last| verb.is_some_and(|verb| takes(program, verb, name, last)));
            match value.split_once(':') {
                _ if last.is_some() => last.map(|last| format!("write `{name} {last}`")),
                _ if list.is_some() => list.map(|list| format!("give the option once for each: `{list}`")),
                _ if shape.is_some() => shape.map(|shape| format!("write `{name} {}`", shell_word(&shape))),
                Some((mode, group)) if name == "--quantize" && group.parse::<u64>().is_ok() => {
                    Some(format!("write `--quantize {} --group-size {group}`", mode.to_lowercase()))
                }
                _ if value.is_empty() => Some(format!("write `{}`", plain(&option))),
                _ if option.contains("FROM=TO") && !value.contains('=') => {
                    let pair = value.replace("->", "=").replace(':', "=").replace(' ', "");
                    let is_pair = pair.contains('=');
                    Some(match element_type(&pair) {
                        _ if is_pair => format!("write `{name} {pair}`"),
                        Ok(typelift::promote::ElementType::F32) => format!("write `{name} f32=TO`"),
                        _ => format!("write `{name} f32={pair}`"),
                    })
                }
                _ if value.contains('(') && value.contains('=') && option.contains("SHAPE") => {
                    let value = value.replace('(', "[").replace(')', "]");
                    Some(format!("write `{name} {}`", shell_word(&value)))
                }
                Some((end, given)) if option.contains("<NAME=") && !value.contains('=') => {
                    Some(format!("write `{name} {}`", shell_word(&format!("{}={}", end.trim(), given.trim()))))
                }
                _ if option.contains("<NAME=") && !value.contains('=') => {
                    let is_name = value.starts_with(|letter: char| letter.is_lowercase() || letter == '_');
                    let is_name = is_name && element_type(&value).is_err();
                    let place = plain(option.split('=').nth(1)?);
                    let pair = if is_name { format!("{value}={place}") } else { format!("NAME={value}") };
                    let names = completed("MODEL.xml", arguments);
                    Some(format!("write `{name} {}`; `{names}` lists the names", shell_word(&pair)))
                }
                _ if option.contains("<KEY=") && value.starts_with('{') => {
                    Some(format!("write `{name} KEY=VALUE` for each property"))
                }
                None if option.contains("<KEY=") => Some(format!("write `{name} {value}=VALUE`")),
                Some((key, given)) if option.contains("<KEY=") => Some(format!("write `{name} {key}={given}`")),
                _ if number.is_some() => number.map(|number| format!("write `{name} {number}`")),
                _ if percent.is_some() => percent.map(|number| format!("write `{name} {}`", number / 100.0)),
                _ => value_tip(name, &value.to_lowercase(), error),
            }
        }
        ErrorKind::MissingRequiredArgument => {
            let verb = verb_of(program, arguments)?.get_name();
            let missing = match error.get(ContextKind::InvalidArg) {
                Some(ContextValue::Strings(missing)) => missing.first().filter(|arg| arg.contains("--")),
                _ => None,
            };
            if missing.is_some_and(|arg| arg.starts_with("<--")) {
                let example = completed(&carried(COMPRESS, program, arguments), arguments);
                let example = (verb == "convert").then(|| format!(", such as `{example}`"));
                return Some(format!("write one of these options{}", example.unwrap_or_default()));
            }
            if let Some(option) = missing.filter(|arg| arg.starts_with("--")) {
                return Some(format!("write `{}`", plain(option)));
            }
            let names_tensor = error.render().to_string().contains("<NAME>");
            let line = if names_tensor { "show MODEL.xml NAME --npy FILE.npy" } else { verb };
            Some(format!("for example, `{}`", completed(&carried(line, program, arguments), arguments)))
        }
        ErrorKind::ArgumentConflict
            if let Some(tensor) = value_of("--output", arguments).filter(|output| !output.contains('.')) =>
        {
            Some(said(&format!("rewrite -e 'cut {tensor}'"), program, arguments))
        }
        ErrorKind::TooManyValues => {
            let option = text(error, ContextKind::InvalidArg)?;
            Some(if is_off(&option, arguments) { format!("leave `{option}` out") } else { format!("write `{option}`") })
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

/// Completes a command with the models that were given, and with a place for what it writes.
fn completed(line: &str, arguments: &[OsString]) -> String {
    /// Commands that read no model.
    const ALONE: [&str; 7] = ["MODEL.xml", "explain", "promote", "schema", "completions", "man", "--version"];
    let line = EXAMPLES.iter().find(|(verb, _)| *verb == line).map_or(line, |(_, example)| example);
    let mut line = format!("typelift {line}");
    let verb = line.split(' ').nth(1).unwrap_or_default();
    let (reads, writes) = (!ALONE.contains(&verb), ["convert", "rewrite"].contains(&verb));
    if !line.contains("--list-rules") && reads {
        let has_model = line.contains(" MODEL.xml") || line.contains(" BEFORE.xml");
        line += if has_model { "" } else { " MODEL.xml" };
        line += if writes && !line.contains(" -o ") { " -o OUT.xml" } else { "" };
    }
    let words: Vec<_> = arguments.iter().skip(1).filter_map(|word| word.to_str()?.rsplit('=').next()).collect();
    let is_output =
        |at: usize| at > 0 && ["-o", "--output", "--output-model", "--output_model"].contains(&words[at - 1]);
    let files = (0..words.len()).filter(|&at| words[at].ends_with(".xml"));
    let (outputs, models): (Vec<usize>, Vec<usize>) = files.partition(|&at| is_output(at));
    let places = [("MODEL.xml", models.first()), ("BEFORE.xml", models.first()), ("AFTER.xml", models.get(1))];
    for (place, given) in places.into_iter().chain([("OUT.xml", outputs.first())]) {
        if let Some(&at) = given {
            line = line.replacen(place, &shell_word(words[at]), 1);
        }
    }
    line
}

/// Formats a row of a table: a command that does the same, or advice.
fn said(meant: &str, program: &Command, arguments: &[OsString]) -> String {
    let first = meant.split(' ').next().unwrap_or_default();
    let is_command = ["MODEL.xml", "--version"].contains(&first) || program.find_subcommand(first).is_some();
    if is_command {
        format!("`{}` does that", completed(&carried(meant, program, arguments), arguments))
    } else {
        meant.to_owned()
    }
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
    if let Some((.., meant)) = VALUES.iter().find(|(name, texts, _)| option == *name && texts.iter().any(is_like)) {
        return Some(if meant.starts_with("--") { format!("write `{meant}`") } else { (*meant).to_owned() });
    }
    let words = VERBS.iter().find(|(_, names)| names.contains(&value)).and_then(|(verb, _)| verb.split_once(' '));
    if let Some((_, meant)) = words.filter(|(_, meant)| meant.split(' ').next() == Some(option)) {
        return Some(format!("write `{meant}`"));
    }
    if option == "--use" {
        return Some(format!("write `--use {}`", near_set(value)?));
    }
    let value = if option == "--target" { value.trim_start_matches('v') } else { value };
    let releases = Release::all().map(|release| release.to_string());
    if let ("--target", Some(last)) =
        (option, releases.filter(|it| it == value || it.starts_with(&format!("{value}."))).last())
    {
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

/// Advice about a habit of git or of the shell in the words of a command that failed.
pub(crate) fn of_habit(arguments: &[OsString]) -> Option<String> {
    let words: Vec<&str> = arguments.iter().filter_map(|word| word.to_str()).collect();
    let is_file = |word: &str| Path::new(word).exists();
    let verb = *words.get(1)?;
    let model = words[2..].iter().find(|word| word.ends_with(".xml") && !word.contains("..") && !word.contains(':'));
    let is_revision = |word: &&&str| {
        let is_path = word.split_once(':').is_some_and(|(name, path)| {
            name.len() > 1 && !name.contains(['=', '/']) && !path.starts_with("//") && path.ends_with(".xml")
        });
        let has_sign = word.contains("..") || word.contains("@{") || word[1..].contains(['~', '^']);
        !is_file(word) && !word.starts_with(['-', '.']) && (word.starts_with("HEAD") || is_path || has_sign)
    };
    for pair in words.windows(2).skip(1) {
        let (option, value) = (pair[0], pair[1]);
        let rest: Vec<_> = words.iter().skip_while(|it| **it != value).take_while(|it| !it.starts_with('-')).collect();
        let statement: Vec<_> =
            rest.iter().map(|word| **word).filter(|word| !is_file(word) && !word.ends_with(".xml")).collect();
        match option {
            "--hint" if ["latency", "throughput"].contains(&&*value.to_lowercase()) => {
                return Some(format!("write `--config PERFORMANCE_HINT={}`", value.to_uppercase()));
            }
            "--rule" | "--rules" | "-r" if value.contains("=>") && !is_file(value) => {
                return Some(format!("--rules takes a file: write `-e {}`", shell_word(value)));
            }
            "-e" | "--statement" if !value.contains(char::is_whitespace) && statement.len() > 1 => {
                return Some(format!("quote the statement: `-e {}`", shell_word(&statement.join(" "))));
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

fn verb_tip(word: &str, program: &Command, arguments: &[OsString]) -> Option<String> {
    let plain = |name: &str| name.to_lowercase().replace('_', "-");
    let named = |word: &str| {
        let row = VERBS.iter().find(|(_, names)| names.iter().any(|name| plain(name) == plain(word)));
        row.map(|row| row.0).or_else(|| Some(program.find_subcommand(word)?.get_name()))
    };
    // The command of another program follows its name: `surgeon extract`.
    let mut words = arguments.iter().filter_map(|it| it.to_str()).skip_while(|it| *it != word);
    let of_program = words.by_ref().find(|it| !PROGRAMS.contains(it)).filter(|_| PROGRAMS.contains(&word));
    if let Some(verb) = of_program.and_then(named).or_else(|| named(word)) {
        let is_ir = completed("show", arguments) != completed("show", &[]);
        let verb = if verb == OVC && is_ir && word != "export" { "convert" } else { verb };
        return Some(said(verb, program, arguments));
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
    let names = || program.get_subcommands().filter(|command| !command.is_hide_set()).map(Command::get_name);
    let near = |name: &String| is_slip(word, name);
    if let Some(name) = typelift::near(word, names()).filter(near).or_else(|| same_stem(word, names())) {
        return Some(format!("did you mean `{name}`?"));
    }
    let lower = word.to_lowercase();
    if let Some(set) = library::SETS.iter().find(|set| lower.len() > 3 && set.name.contains(&lower)) {
        return Some(said(&format!("rewrite --use {}", set.name), program, arguments));
    }
    let others = VERBS.iter().flat_map(|(_, names)| names.iter().copied());
    let owned: Vec<_> = others.clone().map(str::to_owned).collect();
    let within = within(word, owned.iter()).map(|name| name.trim_start_matches('-').to_owned());
    let other = within.or_else(|| typelift::near(word, others).filter(near)).filter(|other| other != word);
    other.and_then(|other| verb_tip(&other, program, arguments))
}

/// True if a word differs from a name in one place, or is its beginning.
fn is_slip(word: &str, name: &str) -> bool {
    let (word, name) = (word.to_lowercase(), name.to_lowercase());
    let same = |pairs: &mut dyn Iterator<Item = (char, char)>| pairs.take_while(|(a, b)| a == b).count();
    let longest = word.chars().count().max(name.chars().count());
    let before = same(&mut word.chars().zip(name.chars()));
    let after = same(&mut word.chars().rev().zip(name.chars().rev())).min(longest - before);
    let is_beginning = before >= 3 && (before == word.chars().count() || before == name.chars().count());
    is_beginning || longest > 3 && (before > 0 || after + 1 == longest) && before + after + 2 >= longest
}

/// The name of which a word is another form: `rewrite` for `rewriting`.
fn same_stem<'n>(word: &str, mut names: impl Iterator<Item = &'n str>) -> Option<String> {
    let is_same = |name: &&str| name.len() > 4 && word.get(..name.len() - 1) == name.get(..name.len() - 1);
    names.find(is_same).map(str::to_owned)
}

fn option_tip(option: &str, program: &Command, arguments: &[OsString]) -> Option<String> {
    let name = option.split('=').next().unwrap_or(option);
    let Some(verb) = verb_of(program, arguments) else {
        let model = arguments.iter().filter_map(|word| word.to_str()).find(|word| word.ends_with(".xml"));
        if let Some(model) = model.filter(|_| option.starts_with("-o") || !is_overview(arguments)) {
            let model = shell_word(model);
            return Some(format!(
                "the command comes first: `typelift convert {model} -o OUT.xml`, or `typelift {model}`"
            ));
        }
        let meant = OPTIONS.iter().find(|(meant, others)| meant.starts_with("--") && others.contains(&name));
        let meant = meant.map_or(name, |row| row.0);
        return match program.get_subcommands().find(|verb| has(verb, meant)) {
            Some(verb) if meant == name && is_overview(arguments) => {
                let words = arguments.iter().skip(1).map(|word| match word.to_string_lossy() {
                    option if option.starts_with('-') => option.into_owned(),
                    word => shell_word(&word).into_owned(),
                });
                Some(format!("write `typelift {} {}`", verb.get_name(), words.collect::<Vec<_>>().join(" ")))
            }
            Some(verb) if meant == name => Some(format!("`{option}` is an option of `typelift {}`", verb.get_name())),
            Some(verb) => Some(said(&format!("{} {meant}", verb.get_name()), program, arguments)),
            None if option.starts_with('-') => None,
            None => {
                Some(format!("to compare two models, write `{}`", completed("diff BEFORE.xml AFTER.xml", arguments)))
            }
        };
    };
    if let (true, Some(model)) = (is_overview(arguments) && option == verb.get_name(), arguments.get(1)) {
        return Some(format!("write `typelift {option} {}`", shell_word(&model.to_string_lossy())));
    }
    if !option.starts_with('-') {
        let tip = WORDS.iter().find(|(name, _)| *name == verb.get_name()).map(|(_, tip)| (*tip).to_owned());
        return Some(tip.unwrap_or_else(|| format!("`typelift help {}` explains the command", verb.get_name())));
    }
    let asked = Asked { given: name, verb, program, arguments };
    let dashed = match name.replace('_', "-") {
        long if long.starts_with("--") => long.to_lowercase(),
        // `-shape` is `--shape`, and `-O` is not `-o`.
        long if long.len() > 2 => format!("-{}", long.to_lowercase()),
        short => short,
    };
    let only_asked = |done: &str| format!("leave `{name}` out: `typelift {}` {done}", verb.get_name());
    let off = is_off(name, arguments).then(|| only_asked("does it only if an option asks for it"));
    let exact = off.or_else(|| asked.meaning(&dashed));
    let negated = ["--no-", "--skip-", "--disable-", "--without-"].iter().any(|start| dashed.starts_with(start));
    let negated = || negated.then(|| only_asked("does only what its options say"));
    let own = || asked.own().into_iter().map(|name| name.trim_start_matches('-').to_owned()).collect::<Vec<_>>();
    let near = |names: &[String]| {
        let near = typelift::near(dashed.trim_start_matches('-'), names.iter().map(String::as_str));
        let is_slip = |near: &String| is_slip(dashed.trim_start_matches('-'), near) && dashed.len() > 3;
        near.filter(is_slip).map(|near| format!("--{near}"))
    };
    let others = OPTIONS.iter().flat_map(|(_, others)| others.iter().copied()).chain(MODEL.iter().copied());
    let others: Vec<_> = others.filter_map(|other| other.strip_prefix("--")).map(str::to_owned).collect();
    exact
        .or_else(|| near(&own()).map(|near| format!("did you mean `{near}`?")))
        .or_else(negated)
        .or_else(|| asked.meaning(&within(name, own().iter().chain(&others))?))
        .or_else(|| asked.meaning(&near(&others)?))
        .or_else(|| {
            let own = asked.own();
            Some(match own.len() {
                1..=FEW => format!("the options of `typelift {}` are {}", verb.get_name(), own.join(", ")),
                _ => format!("`typelift {} -h` lists the options", verb.get_name()),
            })
        })
}

/// The name of the most words, all of which are in an option: `input-shape` for `--overwriteInputShape`. The first one
/// counts.
fn within<'n>(option: &str, names: impl Iterator<Item = &'n String>) -> Option<String> {
    let mut words = String::new();
    for letter in option.chars() {
        words.extend(letter.is_uppercase().then_some('-'));
        words.extend(if letter == '_' { "-".chars().next() } else { letter.to_lowercase().next() });
    }
    let words = format!("-{words}-");
    // A word among many others means little: `--dumpLayerInfo`.
    let parts = |name: &str| name.split('-').filter(|part| !part.is_empty()).count();
    let is_half = |name: &str| parts(name) * 2 >= parts(&words) || words.contains(&format!("--{name}-"));
    let is_within = |name: &&String| name.len() > 3 && is_half(name) && words.contains(&format!("-{name}-"));
    let place = |name: &str| words.find(&format!("-{name}-")).unwrap_or_default();
    let best = names.filter(is_within).max_by_key(|name| (name.matches('-').count(), Reverse(place(name))));
    best.map(|name| format!("--{name}"))
}

/// True if an option is one of other programs for the row of ours, or ours.
fn is_row(meant: &str, option: &str) -> bool {
    option == meant || OPTIONS.iter().any(|(known, others)| *known == meant && others.contains(&option))
}

/// Adds the word for its value to an option that stands alone.
fn valued(verb: &Command, option: &str) -> String {
    let is_it = |arg: &&Arg| arg.get_long().is_some_and(|long| option == format!("--{long}"));
    let value = verb.get_arguments().find(is_it).filter(|arg| arg.get_action().takes_values());
    let value = value.and_then(|arg| arg.get_value_names()?.first()).map(|value| plain(value));
    value.map_or_else(|| option.to_owned(), |value| format!("{option} {value}"))
}

fn has(verb: &Command, option: &str) -> bool {
    spellings(verb).any(|known| option.split(' ').next() == Some(&known))
}

/// An option that a command does not have.
struct Asked<'a> {
    given: &'a str,
    verb: &'a Command,
    program: &'a Command,
    arguments: &'a [OsString],
}

impl Asked<'_> {
    fn own(&self) -> Vec<String> {
        let own = self.verb.get_arguments().filter(|arg| !arg.is_global_set() && !arg.is_hide_set());
        own.filter_map(Arg::get_long).filter(|name| *name != "help").map(|name| format!("--{name}")).collect()
    }

    /// The tip to write an option, if the command can be completed with it.
    fn written(&self, meant: &str) -> String {
        let text = self.filled(meant).unwrap_or_else(|| valued(self.verb, &meant.replace("DEVICE", "cpu")));
        let option = text.split(' ').next().unwrap_or_default();
        let words = self.arguments.iter().filter_map(|word| word.to_str());
        let others: Vec<_> = words.skip(1).filter(|word| has(self.verb, word)).collect();
        let is_switch = valued(self.verb, option) == option;
        if is_switch && refused(self.program, self.verb.get_name(), &[option]).is_some() {
            let needed = self.needed(option).filter(|needed| !others.iter().any(|it| needed.starts_with(it)));
            if let Some(needed) = needed {
                return format!("leave `{}` out: `{option}` belongs to `{needed}`", self.given);
            }
        }
        format!("write `{text}`")
    }

    /// The option that another one needs.
    fn needed(&self, option: &str) -> Option<String> {
        let words = ["typelift", self.verb.get_name(), "a.xml", "-o", "o.xml", option];
        let error = self.program.clone().try_get_matches_from(words).err()?;
        match error.get(ContextKind::InvalidArg)? {
            ContextValue::Strings(missing) => missing.iter().find(|arg| arg.contains("--")).map(|arg| plain(arg)),
            _ => None,
        }
    }

    /// An option of ours with the value that was typed, if it takes that.
    fn filled(&self, meant: &str) -> Option<String> {
        let given = value_of(self.given, self.arguments).filter(|_| !meant.contains('\''))?;
        let (option, lower) = (meant.split(' ').next()?, given.to_lowercase());
        let meaning = VALUES.iter().find(|(own, texts, _)| *own == option && texts.contains(&&*lower));
        if let Some((.., value)) = meaning.filter(|(.., value)| value.starts_with("--")) {
            return Some((*value).to_owned());
        }
        let place = valued(self.verb, option);
        let place = place.split_once(' ')?.1;
        for (end, is_it) in [("=N", lower.parse::<u64>().is_ok()), ("=TYPE", element_type(&lower).is_ok())] {
            if is_it && meant.ends_with(end) {
                return Some(format!("{}={lower}", meant.rsplit_once('=')?.0));
            }
        }
        let is_file = place.starts_with("FILE") || place.starts_with("OUT");
        let is_path = given.ends_with('/') || [".bin", ".npz", ".rules", ".txt"].iter().any(|end| lower.ends_with(end));
        let is_other =
            lower.ends_with(".xml") || given.contains(['{', '"']) || is_file && (!is_path || lower.contains(':'));
        let kind = element_type(&lower).ok().map(|ty| ty.to_string()).filter(|_| option == "--hint");
        if is_other || option == "--config" || option == "--hint" && kind.is_none() {
            return None;
        }
        let layer = given.rsplit_once(':').filter(|(_, ty)| element_type(ty).is_ok()).map(|(name, _)| name.to_owned());
        let small = ["--align", "--compress", "--for", "--quantize"].contains(&option).then(|| lower.clone());
        let last = given.rsplit('.').next().map(str::to_lowercase).filter(|_| small.is_some());
        let forms = [kind, layer, small, Some(given.to_owned()), Some(lower), last, shape_of(given)];
        let form = forms.into_iter().flatten().find(|form| takes(self.program, self.verb, option, form));
        let form = form.map(|form| format!("{option} {}", shell_word(&form)));
        form.or_else(|| repeated(self.program, self.verb, option, given))
    }

    /// The meaning of an option of this name here, or in another command.
    fn meaning(&self, name: &str) -> Option<String> {
        let (verb, arguments) = (self.verb, self.arguments);
        let said = |meant: &str| said(meant, self.program, arguments);
        let is_here = |(owner, names, _): &&(&str, &[&str], &str)| *owner == verb.get_name() && names.contains(&name);
        if let Some((.., meant)) = ELSEWHERE.iter().find(is_here) {
            return Some(said(meant));
        }
        let is_output = ["-o", "--log", "--report"].contains(&name) || is_row("--output", name);
        if is_output && !has(verb, "--output") && verb.get_name() != "explain" {
            return Some("the answer goes to standard output: write `> FILE`".to_owned());
        }
        let meanings = || OPTIONS.iter().filter(|(_, others)| others.contains(&name)).map(|row| row.0);
        for other in [format!("{name}s"), name.trim_end_matches('s').to_owned()] {
            if has(verb, &other) && other != name && !meanings().any(|meant| meant.starts_with(&other)) {
                return Some(self.written(&other));
            }
        }
        let own = |meant: &'static str| match meant.strip_prefix(verb.get_name()) {
            Some(rest) => Some(rest.trim_start()).filter(|rest| rest.starts_with('-')),
            None => Some(meant).filter(|meant| has(verb, meant)),
        };
        if let Some(meant) = meanings().find_map(own) {
            let is_given = arguments.iter().any(|word| ["-o", "--output"].iter().any(|it| word == it));
            if meant == "--in-place" && is_given {
                return Some(format!("leave `{}` out: -o replaces a file that is there", self.given));
            }
            return Some(self.written(meant));
        }
        if MODEL.contains(&name) {
            return Some(format!(
                "give the model without `{}`: `{}`",
                self.given,
                completed(verb.get_name(), arguments)
            ));
        }
        if has(verb, name) {
            return Some(self.written(name));
        }
        if let Some(meant) = meanings().find(|meant| !meant.starts_with("--")) {
            return Some(said(meant));
        }
        let others = || self.program.get_subcommands().filter(|other| !other.is_hide_set());
        let is_typed = |_: &&Command| self.given.starts_with("--") == name.starts_with("--");
        let having: Vec<_> =
            others().filter(is_typed).filter(|other| has(other, name)).map(Command::get_name).collect();
        if !having.is_empty() {
            return Some(format!("`{name}` is an option of {}", having.join(", ")));
        }
        let bare = name.trim_start_matches('-');
        if let Some(set) = library::get(bare) {
            return Some(said(&format!("rewrite --use {}", set.name)));
        }
        let values = verb.get_positionals().flat_map(|arg| arg.get_value_names().unwrap_or_default());
        let takes = bare.to_uppercase();
        if values.filter(|value| !takes.is_empty() && value.split('_').any(|word| word == takes)).count() > 0 {
            return Some(format!("give it without `{}`: `{}`", self.given, completed(verb.get_name(), arguments)));
        }
        // The same letter means other things elsewhere.
        let is_long = name.starts_with("--");
        let elsewhere = meanings().find_map(|meant| Some((others().find(|other| has(other, meant))?, meant)));
        if let Some((other, meant)) = elsewhere.filter(|_| is_long) {
            let option = valued(other, meant);
            let words: Vec<_> = option.splitn(2, ' ').collect();
            let is_alone = refused(self.program, other.get_name(), &words) != Some(ErrorKind::MissingRequiredArgument);
            let before = if is_alone { other.get_name() } else { COMPRESS };
            return Some(said(&format!("{before} {option}")));
        }
        let verbs = || VERBS.iter().filter(|(_, names)| is_long && names.contains(&bare)).map(|row| row.0);
        let meant = verbs().next()?;
        Some(own(meant).map_or_else(|| said(meant), |meant| format!("write `{meant}`")))
    }
}

/// The value that was typed for an option: after `=`, or the next word.
fn value_of<'a>(option: &str, arguments: &'a [OsString]) -> Option<&'a str> {
    let mut words = arguments.iter().filter_map(|word| word.to_str());
    let word = words.find(|word| word.split('=').next() == Some(option))?;
    let value = word.split_once('=').map(|(_, value)| value).or_else(|| words.next())?;
    Some(value).filter(|value| !value.is_empty() && !value.starts_with('-'))
}

/// A switch of other programs may have a value that turns it off: `--fp16=False`.
fn is_off(option: &str, arguments: &[OsString]) -> bool {
    let is_zero = arguments.iter().any(|word| word.to_str() == Some(&format!("{option}=0")));
    let value = value_of(option, arguments).unwrap_or_default().to_lowercase();
    is_zero || ["false", "no"].contains(&&*value)
}

/// Why these options of a command are no complete command line, if they are not. The models and the output are added.
fn refused(program: &Command, verb: &str, options: &[&str]) -> Option<ErrorKind> {
    let models: &[&str] = match verb {
        "diff" | "verify" => &["a.xml", "b.xml"],
        "why" => &["a.xml", "x"],
        _ => &["a.xml"],
    };
    let output: &[&str] = if ["convert", "rewrite"].contains(&verb) { &["-o", "o.xml"] } else { &[] };
    let words = [&["typelift", verb], models, output, options].concat();
    program.clone().try_get_matches_from(words).err().map(|error| error.kind())
}

fn takes(program: &Command, verb: &Command, option: &str, value: &str) -> bool {
    let refused = [ErrorKind::InvalidValue, ErrorKind::ValueValidation, ErrorKind::UnknownArgument];
    let words = ["typelift", verb.get_name(), option, value];
    let result = program.clone().try_get_matches_from(words);
    valued(verb, option) != option && result.err().is_none_or(|error| !refused.contains(&error.kind()))
}

/// Writes a list once for each of its values: `--for cpu --for gpu` for `MULTI:CPU,GPU`.
fn repeated(program: &Command, verb: &Command, option: &str, list: &str) -> Option<String> {
    let list = list.split_once(':').filter(|(first, _)| first.chars().all(char::is_uppercase)).map_or(list, |it| it.1);
    // A comma in brackets is part of a shape.
    let mut depth = 0;
    let values = list.split(|letter| {
        depth += i32::from(letter == '[') - i32::from(letter == ']');
        letter == ',' && depth == 0
    });
    let values: Vec<_> =
        values.map(|value| shape_of(value.trim()).unwrap_or_else(|| value.trim().to_owned())).collect();
    let lower = values.iter().map(|value| value.to_lowercase()).collect();
    // Names keep their case.
    let is_named = values.iter().any(|value| value.contains('='));
    let forms: [Vec<String>; 2] = if is_named { [values, lower] } else { [lower, values] };
    forms.into_iter().filter(|values| values.len() > 1).find_map(|values| {
        let words: Vec<_> = values.iter().flat_map(|value| [option, value]).collect();
        let once: Vec<_> = values.iter().map(|value| format!("{option} {}", shell_word(value))).collect();
        refused(program, verb.get_name(), &words).is_none().then(|| once.join(" "))
    })
}

/// A shape as `NAME=[…]`, for `NAME[…]` and `NAME:1x3`.
fn shape_of(value: &str) -> Option<String> {
    if value.contains("],") {
        return None;
    }
    if let Some((name, dims)) = value.split_once('[').filter(|(name, _)| !name.is_empty() && !name.ends_with('=')) {
        return Some(format!("{}=[{dims}", name.trim_end_matches(':')));
    }
    let (name, dims) = value.split_once(':').or_else(|| value.split_once('='))?;
    let is_dims = dims.contains('x') && dims.split('x').all(|dim| dim == "?" || dim.parse::<u64>().is_ok());
    is_dims.then(|| format!("{name}=[{}]", dims.replace('x', ",")))
}

/// A command with the values that were typed for the options of another program.
fn carried(meant: &str, program: &Command, arguments: &[OsString]) -> String {
    if meant.contains("cut [A] .. [B]") {
        let of = |names: &[&str]| names.iter().find_map(|name| value_of(name, arguments));
        let first = of(&["--inputs", "--input", "--input-names", "--input_names"]).unwrap_or("A");
        let last = of(&["--outputs", "--output-names", "--output_names"]).unwrap_or("B");
        return meant.replace("[A]", &format!("[{first}]")).replace("[B]", &format!("[{last}]"));
    }
    let mut words: Vec<String> = meant.split(' ').map(str::to_owned).collect();
    let Some(verb) = program.find_subcommand(&words[0]).filter(|_| !meant.contains(" -e ")) else {
        return meant.to_owned();
    };
    fn options(words: &[String]) -> Vec<&str> {
        words[1..].iter().filter(|word| !word.ends_with(".xml")).map(String::as_str).collect()
    }
    for given in arguments.iter().skip(1).filter_map(|word| word.to_str()?.split('=').next()) {
        let dashed = given.replace('_', "-").to_lowercase();
        let rows = OPTIONS.iter().filter(|(_, others)| others.contains(&&*dashed)).map(|row| row.0);
        let known = has(verb, &dashed) && !rows.clone().any(|row| has(verb, row));
        let own = known.then_some(&*dashed).into_iter().chain(rows).find(|row| row.starts_with("--") && has(verb, row));
        let Some(own) =
            own.filter(|own| given.starts_with('-') && !is_row("--output", own) && !is_off(given, arguments))
        else {
            continue;
        };
        let asked = Asked { given, verb, program, arguments };
        // A switch has no value.
        if valued(verb, own) == own
            && refused(program, verb.get_name(), &[&[own][..], &options(&words)].concat()).is_none()
        {
            words.push(own.to_owned());
            continue;
        }
        let Some((option, value)) = asked.filled(own).and_then(|text| Some(owned(text.split_once(' ')?))) else {
            continue;
        };
        match words.iter().position(|word| *word == option) {
            Some(at) if at + 1 < words.len() => words[at + 1] = value,
            Some(_) => words.push(value),
            _ => {
                let options = [&options(&words)[..], &[&*option, value.trim_matches('\'')]].concat();
                if refused(program, verb.get_name(), &options).is_none() {
                    words.extend([option, value]);
                }
            }
        }
    }
    words.join(" ")
}

fn owned((option, value): (&str, &str)) -> (String, String) {
    (option.to_owned(), value.to_owned())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Command lines with one word of another program each.
    fn lines(program: &Command) -> Vec<Vec<&str>> {
        let options = OPTIONS.iter().map(|row| row.1).chain(ELSEWHERE.iter().map(|row| row.1)).chain([MODEL]).flatten();
        let options: Vec<_> = options.copied().collect();
        let verbs = program.get_subcommands().filter(|verb| !verb.is_hide_set()).map(Command::get_name);
        let lines =
            verbs.flat_map(|verb| options.iter().map(move |&option| vec!["typelift", verb, "model.xml", option]));
        let verbs = VERBS.iter().flat_map(|row| row.1).map(|&verb| vec!["typelift", verb, "model.xml"]);
        lines.chain(verbs).collect()
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
            let words: Vec<_> = command.unwrap_or_default().split(' ').map(OsString::from).collect();
            // A place is no value, and a statement is several words.
            let is_read = is_overview(&words) || tip.contains(" -e ");
            let fault = program.clone().try_get_matches_from(&words).err().map(|error| error.kind());
            let is_place = [Some(ErrorKind::InvalidValue), Some(ErrorKind::ValueValidation), None].contains(&fault);
            if command.is_some() && !is_read && !is_place && fault != Some(ErrorKind::DisplayVersion) {
                wrong.push(format!("{line:?}: {tip}"));
            }
        }
        assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    }
}
