//! Answers to mistyped commands: the tip is what a person would say.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::cli::{command, printed, start, words};

/// Command lines with one mistake each. `M` is a model with an error, and `R` is repaired.
const LINES: &[&str] = &[
    "compress M",
    "quantize M",
    "fix M",
    "repair M",
    "info M",
    "inspect M",
    "summary M",
    "lint M",
    "validate M",
    "optimize M",
    "visualize M",
    "compare M M",
    "chekc M",
    "covert M -o o.xml",
    "conv M -o o.xml",
    "M --help-me",
    "convert M --input_shape [1,3,32,32] -o o.xml",
    "convert M --input-shape [1,3,32,32] -o o.xml",
    "convert M --fp16 -o o.xml",
    "convert M --half -o o.xml",
    "convert M --int8 -o o.xml",
    "convert M --compress fp8 -o o.xml",
    "convert M --compress_to_fp16 -o o.xml",
    "convert M --out o.xml",
    "convert M out.xml",
    "convert M",
    "convert M -j 0 -o o.xml",
    "convert M -j many -o o.xml",
    "convert M --set-type image=f31 -o o.xml",
    "convert M --set-type image:f16 -o o.xml",
    "convert M --set-type imagge=f16 -o o.xml",
    "convert M --set-shape image=1,3 -o o.xml",
    "convert M --types f32=f61 -o o.xml",
    "convert M --types f32 -o o.xml",
    "convert M --align torch -o o.xml",
    "convert M --target 2022 -o o.xml",
    "convert M --target opset8 -o o.xml",
    "rewrite M 'rename image img' -o o.xml",
    "rewrite M -e 'renam image img' -o o.xml",
    "rewrite M --use fuse-gelo -o o.xml",
    "check M --deny error",
    "check M --deny stale-prot",
    "check M --strict",
    "check M --json",
    "check M --for float",
    "check misssing.xml",
    "check modl.xml",
    "why R probabilites",
    "diff M",
    "view M",
    "show R --only Convrt",
    "promote f32",
    "promote f32 i46",
    "promote f32 f32 f32",
    "promote f32 f16 --rules torch",
    "explain type-mismach",
    "schema chek",
];

/// More command lines, by people with other habits.
const MORE: &[&str] = &[
    "model",
    "model.bin",
    "model.onnx",
    "stat M",
    "shwo M",
    "veiw M",
    "simplify M",
    "fuse M",
    "rename M a b",
    "merge M M",
    "run M",
    "fp16 M",
    "upgrade M",
    "help convrt",
    "convert M --inplace",
    "convert M --force",
    "convert M -i",
    "convert M --bf16 -o o.xml",
    "convert M --compress int8 -o o.xml",
    "convert M --compress FP16 --dry-run",
    "convert M --quantize int8 -o o.xml",
    "convert M --quantize fp16 -o o.xml",
    "convert M --batch 4 -o o.xml",
    "convert M --layout nchw -o o.xml",
    "convert M --opset 8 -o o.xml",
    "convert M --type f32=f16 -o o.xml",
    "convert M --to f16 -o o.xml",
    "convert M --strict -o o.xml",
    "convert M --json -o o.xml",
    "convert M -o o.onnx",
    "convert M -o model.xml",
    "convert M --keep norm/varianc --types f32=f16 -o o.xml",
    "convert M --set-type image=float -o o.xml",
    "convert M --set-type image=uint9 -o o.xml",
    "convert M --set-shape 'image=[1;3]' -o o.xml",
    "check M --exclude stale-port",
    "check M --release 2023.3",
    "check M --target 2099.1",
    "check M --for int8",
    "check M --for CPU",
    "check M --allow type-mismatch",
    "check M --fix",
    "check model.bin",
    "check .",
    "diff M nosuch.xml",
    "view M -o v.png",
    "show M --filter Convert",
    "show M --layer image",
    "show R --around imag",
    "why M",
    "why R imag",
    "rewrite M --rule 'Relu(x) => Abs(x)' -o o.xml",
    "rewrite M --pass fuse-gelu -o o.xml",
    "rewrite M -e 'Relu(x) -> Abs(x)' -o o.xml",
    "rewrite M -e 'Relu(x)' -o o.xml",
    "reduce M -o o.xml",
    "verify M",
    "promote f32,f16",
    "promote f32 + f16",
    "promote f32 f16 --framework pytorch",
    "promote float32 int64",
    "promote --rules numpy 'i8[10]' 256",
    "explain E001",
    "stats M --top 10",
];

/// Command lines with options, values and arguments of other programs, or with an argument left out.
const HABITS: &[&str] = &[
    ".",
    "nosuch.xml",
    "R M",
    "convert R --precision f16 -o o.xml",
    "convert R --weights w.bin -o o.xml",
    "convert R --static -o o.xml",
    "convert R -f -o o.xml",
    "convert R --quantize w8a8 -o o.xml",
    "convert R --quantize W4A16 -o o.xml",
    "convert R --quantize int8_asym --group-size 3 -o o.xml",
    "convert R --ratio 0.5 -o o.xml",
    "convert R --exclude head --compress f16 -o o.xml",
    "convert R --mean_values [1,2,3] -o o.xml",
    "convert R --set-type image=f16,mask=f32 -o o.xml",
    "convert R --set-shape [1,3,32,32] -o o.xml",
    "convert R --set-shape image=1x3x32x32 -o o.xml",
    "convert R --compress HALF --dry-run",
    "convert R --target latest -o o.xml",
    "check R --device CPU",
    "check R --for bfloat16",
    "check R --for llm",
    "check R --for intel-gpu",
    "int8 R",
    "verify --golden r.npz R",
    "convert R --keep Softmax --compress f16 -o o.xml",
    "convert --dequantize int8 R -o o.xml",
    "rewrite R --e Relu",
    "check R --no-color",
    "check R --errors-only",
    "check R -q --for f16",
    "view R",
    "view R r.html",
    "show R --graph",
    "show R Add",
    "why R",
    "why R --layer head",
    "verify R M --tolerance 1e-3",
    "reduce R",
    "rewrite R -f own.rules -o o.xml",
    "rewrite R --rules fuse-gelu -o o.xml",
    "promote float32 int32",
    "promote --rules numpy half double",
    "promote half flot",
    "completions",
    "stats R --chart",
];

/// Command lines of people who had not seen the program before.
const STRANGERS: &[&str] = &[
    "rewrite R -r my.rules -o o.xml",
    "convert R --force -o o.xml",
    "R -o o.xml",
    "R check",
    "fix M -o o.xml",
    "--input_model R --output_dir out",
    "-m R -d CPU",
    "quantise R",
    "list-rules",
    "status R",
    "convert R --shapes=image:1x3x32x32 -o o.xml",
    "convert R --minShapes=image:1x3x32x32 -o o.xml",
    "convert R -b 1 -o o.xml",
    "convert R --set-length batch=1,seq=16 -o o.xml",
    "convert R --set-shape 'image:[1,3,32,32]' -o o.xml",
    "convert R --reverse_input_channels -o o.xml",
    "convert R --scale_values [1,2,3] -o o.xml",
    "convert R --layout nhwc -o o.xml",
    "convert R --weight-format int8 -o o.xml",
    "convert R --fuse-gelu -o o.xml",
    "convert R --output-names a,b -o o.xml",
    "convert R --compress=fp32 -o o.xml",
    "convert R -c f16 -o o.xml",
    "convert R --plan",
    "convert R --target GPU -o o.xml",
    "infer R --shape",
    "show R --grep conv",
    "why R variance",
    "rewrite R -e 'tap hed' -o o.xml",
    "rewrite R -e 'delete output probabilities' -o o.xml",
    "rewrite R -e 'cut at head' -o o.xml",
    "rewrite R -e 'cut block 3-5' -o o.xml",
    "rewrite R -e 'Softmax(x, axis=-1) => x' -o o.xml",
    "rewrite R -e 'set head = 0' -o o.xml",
    "rewrite R -e 'before image : Subtract(_, [1.5,2,3])' -o o.xml",
    "rewrite R --use fuse-layernorm -o o.xml",
    "rewrite R --use optimize -o o.xml",
    "rewrite R --use fuse-gelu,no-ops -o o.xml",
    "rewrite R -e 'output probabilities : f16[1,2]' -o o.xml",
    "rewrite R -e 'freeze image = 0' -o o.xml",
    "convert R --compress f16 --keep norm -o o.xml",
    "check R --target 2023.9",
    "verify R R --precision f16",
    "verify R R --config PRECISION f32",
    "verify R R --rtol 1%",
    "view R out.html",
    "view R -o page.html --no-open",
    "explain R",
    "reduce R -o s.xml python3 x.py",
    "show R --around head --depth two",
    "convert R --quantize plan.txt -o o.xml",
    "surgeon extract R --inputs a --outputs b -o o.xml",
    "polygraphy surgeon sanitize R -o o.xml",
    "optimum-cli export openvino -m gpt2 out",
    "export onnx R",
    "blame R head",
    "init",
    "help rewritting",
    "help quantize",
    "diff M R -o d.html",
    "diff M R --stat",
    "diff M R --tolerance 1e-3",
    "diff M R --format html",
    "view --diff M R",
    "view R --port 8080",
    "view R --layer head",
    "view R --no-open -o page.html",
    "stats R --flops",
    "stats R -pc",
    "stats R --csv",
    "explain 'Add needs inputs of one type, but has f32 and i64'",
    "explain 'error[type-mismatch]: something'",
    "explain TL001",
    "promote f32 fp8",
    "promote f32 complex64",
    "promote f32 i32 f64 --rules pytorch",
    "promote f32 f16 --op Div",
    "promote f32 f16 --rules tf",
    "convert .",
    "convert . -o o.xml",
    "verify R R -shape image[1,3,32,32]",
    "verify R R --data_shape [1,3,32,32]",
    "verify R R --niter 10",
    "verify R R --load-inputs in.npz",
    "verify R R --inputs in.npz",
    "verify R R --config KV_CACHE_PRECISION:u8",
    "verify R R --atol",
    "convert R --overwrite-input-shape image:1,3,32,32 -o o.xml",
    "convert R --saveEngine=o.xml",
    "convert R --awq -o o.xml",
    "convert R --extensions lib.so -o o.xml",
    "convert R --disable_fusing -o o.xml",
    "convert R --task text-generation -o o.xml",
    "convert R --scale 255 -o o.xml",
    "convert R --freeze_placeholder_with_value 'image->1' -o o.xml",
    "convert R --ratio 80% --quantize int4_sym -o o.xml",
    "convert R --set-type 'image : f16' -o o.xml",
    "convert R --set-type 'image = f16' --dry-run",
    "convert R --set-shape image=[3,32,32] -o o.xml",
    "convert R --output a -o o.xml",
    "convert R -o nosuch/o.xml",
    "convert R --bin R -o o.xml",
    "rewrite R --fold-constants -o o.xml",
    "rewrite R --delete-node head -o o.xml",
    "rewrite R -e my.rules -o o.xml",
    "rewrite R --rules model.bin -o o.xml",
    "rewrite R -e 'image : f16' -o o.xml",
    "rewrite R -e 'set-shape image : [1,3,32,32]' -o o.xml",
    "rewrite R -e 'after image : Convert(_, i32)' -o o.xml",
    "rewrite R -e 'Relu(x) => Convert(x, i32)' -o o.xml",
    "rewrite R -e 'Relu(x) => opset7.Gelu(x)' -o o.xml",
    "show R --inputs",
    "show R head/weight --npy",
    "show R --npy w.npy",
    "why R head f32",
    "check R --for genai:chat",
    "check R --target v2024.1",
    "check R --format junit",
    "check R --select type-mismatch",
    "R --json",
    "R --for gpu",
    "convert R -out o.xml",
    "convert R,M -o o.xml",
    "convert R --output-format onnx -o o.xml",
    "convert R --image-size 224 -o o.xml",
    "convert R --keep-fp32 head -o o.xml",
    "convert R --types fp32:fp16 -o o.xml",
    "convert R --types fp16 -o o.xml",
    "convert R --input-type u8 -o o.xml",
    "convert R --set-length batch -o o.xml",
    "convert R --set-shape 'image=(1,3,32,32)' -o o.xml",
    "convert R --quantize -o o.xml",
    "rewrite R -e 'remove head' -o o.xml",
    "rewrite R -e 'cut image..head' -o o.xml",
    "rewrite R -e 'before head : Relu(_)' -o o.xml",
    "rewrite R -e 'Relu(x) => abs(x)' -o o.xml",
    "check R --openvino 2024.1",
    "check R --ignore-missing-weights",
    "check R -o report.json",
    "check R --fix --dry-run",
    "check R --allow all",
    "stats R --sort size",
    "view R R R",
    "reduce R -o s.xml --finding foo",
    "promote f32 and f16",
    "shrink R",
    "compact R",
    "batch R 4",
    "nhwc R",
    "transpose R",
    "add-lora R",
    "gelu R",
    "to_fp16 R",
    "eq R M",
    "rm R",
    "list-devices",
    "query_model R",
    "calibrate R",
    "check R --gpu",
    "check R --fp16",
    "verify R R --gpu",
    "verify R R -o r.json",
    "verify R R --against M",
    "verify R R --timeout 10s",
    "show R -o g.dot",
    "show R --limit 10",
    "why R --from image --to head",
    "stats R --block 0",
    "diff R M --only types",
    "convert R --outdir out",
    "convert R --pytorch -o o.xml",
    "convert R --remove-converts -o o.xml",
    "compress_weights R --mode int8_asym --group-size 64",
    "convert R --quantize int4_sym:64 -o o.xml",
    "convert R --quantize CompressWeightsMode.INT4_ASYM -o o.xml",
    "convert R --compress_to_fp16=False -o o.xml",
    "convert R --in-place=false",
    "convert R --share_weights -o o.xml",
    "convert R --keep head -o o.xml",
    "convert R --compress f16 --keep_io_types -o o.xml",
    "convert R --compress f16 --keep op:GlobalAveragePool -o o.xml",
    "convert R --compress f16 --keep node:hed -o o.xml",
    "convert R --skip-constant-folding -o o.xml",
    "convert R --types f32- -o o.xml",
    "convert R --output act -o o.xml",
    "convert R --set-shape image[1,3,32,32] -o o.xml",
    "ovc R --output_model small.xml",
    "check R -d MULTI:CPU,GPU",
    "check R --for cpu,gpu",
    "R -d CPU",
    "verify R R -op f16",
    "verify R R -i images/",
    "stats R --dumpLayerInfo",
    "diff HEAD~1 -- R",
    "diff --cached R",
    "diff model.xml..repaired.xml",
    "show HEAD:model.xml",
    "rewrite R -e rename probabilities scores -o o.xml",
    "rewrite R --rules 'Divide(x, 6) => Multiply(x, 0.1667)' -o o.xml",
    "verify R R -hint latency",
    "show -hide-constants R",
];

/// Command lines of which everything that was typed belongs to the tip.
const CARRIED: &[&str] = &[
    "infer -data_shape [1,3,32,32] R",
    "infer R --input-shape 1,3,32,32",
    "convert R --input image[1,3,32,32] -o o.xml",
    "convert R --set-shape image=3x32x32 -o o.xml",
    "convert R --set-shape image=[N,3,32,32] -o o.xml",
    "convert R --set-shape image=[1, 3, 32, 32] -o o.xml",
    "convert R --image-size 224 -o o.xml",
    "set-shape R image 1,3,32,32",
    "trtexec --onnx R --fp16 --saveEngine=o.xml",
    "convert R --quantize=int8-asym -gs 64 -o o.xml",
    "convert R --mode INT4_SYM --group_size 32 --ratio 0.8 -o o.xml",
    "convert R --group_size 32 --quantise int4 -o o.xml",
    "nncf compress_weights R --mode nf4",
    "quantize R --bits 4 --group-size 32",
    "quantize-weights R int4",
    "convert R --source_layout nhwc --target_layout nchw -o o.xml",
    "convert R --mean_values [123.6,116.2,103.5] --scale_values [58.4,57.1,57.4] -o o.xml",
    "mo -m R --reverse_input_channels --mean_values [103,116,123] --scale 58.8 -o out",
    "ovc R --output_model o.xml --compress_to_fp16 --input_shape [1,3,32,32]",
    "convert R --compress_to_fp16=True --output_model o.xml",
    "convert R --input_dtype u8 -o o.xml",
    "convert R --remove-layer head -o o.xml",
    "convert R --per_channel --compress f16 -o o.xml",
    "convert R --compress f16 --keep .*head.* -o o.xml",
    "convert R --compress f16 --keep type=MatMul -o o.xml",
    "convert R --target openvino-2024.3.0 -o o.xml",
    "convert R --types f32 = f16 -o o.xml",
    "rename_input R image pixels",
    "set-batch-size R 4",
    "change-layout R NHWC",
    "polygraphy surgeon extract R --inputs image:[1,3,32,32]:float32 --outputs probabilities:auto -o o.xml",
    "polygraphy run R M --onnxrt --trt --atol 1e-3",
    "polygraphy inspect model R --mode=full",
    "verify R M -d GPU -infer_precision f16",
    "verify R --reference ref.npz --thresh 0.01",
    "check R --for MYRIAD",
    "check R --target-device AUTO",
    "check R --warnings-as-errors",
    "view --export x.svg R",
    "show --stat R",
    "show R head",
    "difftool R M",
    "fmt R",
    "--compress f16 convert R -o o.xml",
    "R convert --compress f16 -o o.xml",
    "R --input_name image --input_shape 1,3,32,32",
    "trace-type R head",
    "lint R --fix",
    "compare R M --tolerance 0.01",
    "rename R image=pixels",
    "verify R M --threshold 1e-2 --device_name CPU",
    "polygraphy run R M --rtol 1e-3 --input-shapes image:[1,3,32,32]",
];

#[test]
fn tips_carry_what_was_typed_with_the_names_of_the_model() {
    insta::assert_snapshot!("carried", answers(CARRIED));
}

#[test]
fn commands_of_strangers_get_the_tip_that_a_person_would_give() {
    insta::assert_snapshot!("strangers", answers(STRANGERS));
}

#[test]
fn habits_of_other_programs_get_the_tip_that_a_person_would_give() {
    insta::assert_snapshot!("habits", answers(HABITS));
}

#[test]
fn more_mistyped_commands_get_the_tip_that_a_person_would_give() {
    insta::assert_snapshot!("more_tips", answers(MORE));
}

#[test]
fn mistyped_commands_get_the_tip_that_a_person_would_give() {
    insta::assert_snapshot!("tips", answers(LINES));
}

/// Returns each command line with its status and the first lines of its answer.
fn answers(lines: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(root.join("testdata/tutorial/classifier.xml"), folder.path().join("model.xml")).unwrap();
    std::fs::copy(root.join("testdata/tutorial/classifier.bin"), folder.path().join("model.bin")).unwrap();
    let mut answers = String::new();
    let repair = ["convert", "model.xml", "-o", "repaired.xml"];
    assert!(Command::new(env!("CARGO_BIN_EXE_typelift")).args(repair).current_dir(&folder).status().unwrap().success());
    let word = |word| match word {
        "M" => "model.xml",
        "R" => "repaired.xml",
        word => word,
    };
    for line in lines {
        let line = line.split(' ').map(word).collect::<Vec<_>>().join(" ");
        let words = words(&line).unwrap();
        let mut program = command(folder.path(), &words.iter().map(String::as_str).collect::<Vec<_>>());
        let cache = folder.path().canonicalize().unwrap().join("cache");
        program
            .env("XDG_CACHE_HOME", &cache)
            .env("LOCALAPPDATA", &cache)
            .env_remove("DISPLAY")
            .env_remove("WAYLAND_DISPLAY");
        let (mut reader, writer) = std::io::pipe().unwrap();
        program.env("COLUMNS", "100").stdin(Stdio::null()).stdout(writer.try_clone().unwrap()).stderr(writer);
        let mut child = start(&mut program);
        // The pipe ends with its last writer.
        drop(program);
        let mut text = Vec::new();
        reader.read_to_end(&mut text).unwrap();
        let status = child.wait().unwrap();
        let text = printed(text).replace(&printed(cache.to_str().unwrap().into()), "CACHE");
        let shown: Vec<_> =
            text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("Usage:")).collect();
        let shown = shown.iter().filter(|line| !line.contains("try '--help'")).take(5);
        let _ = writeln!(answers, "$ typelift {line}   [{}]", status.code().unwrap());
        for line in shown {
            let _ = writeln!(answers, "{line}");
        }
        answers.push('\n');
    }
    answers
}

#[test]
fn shells_complete_codes_releases_and_types() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
    let output = command.args(["completions", "bash"]).output().unwrap();
    let script = String::from_utf8(output.stdout).unwrap();
    for value in ["stale-port", "warnings", "2023.3", "bf16", "fuse-gelu", "jax-strict"] {
        assert!(script.contains(value), "{value}");
    }
}

#[test]
fn a_model_without_a_command_gives_an_overview() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
    let output =
        command.arg("testdata/tutorial/classifier.xml").current_dir(root).env("COLUMNS", "80").output().unwrap();
    assert_eq!(output.status.code(), Some(1), "the model has an error");
    insta::assert_snapshot!("overview", String::from_utf8(output.stdout).unwrap());
}

#[test]
fn a_quiet_run_prints_only_errors() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
        command.args(arguments).arg("-o").arg(folder.path().join("o.xml")).current_dir(&root).output().unwrap()
    };
    let sound = run(&["convert", "-q", "testdata/models/realcpt_chain.xml"]);
    assert_eq!((sound.status.code(), sound.stderr.len()), (Some(0), 0));
    let faulty = run(&["convert", "-q", "--align", "off", "testdata/tutorial/classifier.xml"]);
    assert_eq!(faulty.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&faulty.stderr).contains("error[type-mismatch]"));
}
