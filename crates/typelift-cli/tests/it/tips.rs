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
    "rewrite R own.rules",
    "convert R --target_version 2023.3 -o o.xml",
    "rewrite R -e 'set input image uint8' -o o.xml",
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
    "rewrite R --use fuse-attention -o o.xml",
    "rewrite R –-use norms –o o.xml",
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

/// Command lines whose answers have quotes of a Unix shell.
#[cfg(unix)]
const UNIX: &[&str] = &[
    "jq '.layers[] | select(.type==\"Relu\")' R",
    // Windows does not look whether the folder exists, nor at capitals.
    "check nosuch/../MODEL.xml",
    "jq 'del(.layers[0])' R",
    "'keys' R",
    "more R",
    "awk '/Relu/' R",
    // PowerShell reads a comma.
    "sed -n 1,20p R",
];

/// Command lines with a slip in a word, an expression of another tool, or a near name.
const SLIPS: &[&str] = &[
    "repaired.xml nowhere.xml",
    "rewrite repaired.xml -e 'set image x u8; set head f16' -o o.xml",
    "stats R --max-memory 2 gb",
    "stats R M --max-memory=512 MiB",
    "verify R R --timeout 5 s",
    "rewrite R -e ':f16' -o o.xml",
    "rewrite R -e ' => Abs(x)' -o o.xml",
    "verify -m R -d CPU -hint latency",
    "verify R R --hint throughput",
    "surgeon extract R --outputs probabilities -o o.xml",
    "serve R",
    "open R",
    "start R",
    "diff M R --name-only",
    "log R",
    "stats '.layers[] | .type' R",
    "run --rm -it R check",
    "check M R --fix",
    "convert M R",
    "why M",
    "why R",
    "rewrite R -e 'Relu(x) => Clamp(x, 0, 6)' -o o.xml",
    "rewrite R -e 'Relu(x) => Clamp(x, min=0, max=6)' -o o.xml",
    "rewrite R -e 'set image.shape = [1,3,32,32]' -o o.xml",
    "convert R --quantize @model.bin -o o.xml",
    "convert R --weight-format int4 -o o.xml",
    "R --help-me",
    "diff M R --xyz",
    "verify R R --pyhton python3",
    "inspect R --show layers",
    "'.layers | length' R",
    "sed 's/norm/Norm/g' R",
    "sed 's/f32/f16/g' R -o o.xml",
    "sed -i 's#image#pixels#' R",
    "rewrite R 's/head/Head/' -o o.xml",
    "rewrite R -e 's/norm/Norm/g' -o o.xml",
    "rewrite R -e 's|probab|Probab|' -o o.xml",
    "rewrite R -e 'image: f32 -> f16' -o o.xml",
    "rewrite R -e 'head: f32 -> f16' -o o.xml",
    "rewrite R -e 'layer head type f16' -o o.xml",
    "rewrite R -e 'head.name=x' -o o.xml",
    "rewrite R -e 'image.shape = [1,3,32,32]' -o o.xml",
    "rewrite R -e 'del(.layers.act)' -o o.xml",
    "rewrite R -e 'graph.rename(\"image\", \"pixels\")' -o o.xml",
    "rewrite R -e 'Clamp => Relu' -o o.xml",
    "rewrite R -e 'Multiply -> Add' -o o.xml",
    "rewrite R -e 'image -> pixels' -o o.xml",
    "check R --output json",
    "stats R -o json",
    "convert 'repaired.xml -o o.xml'",
    "convert repaired.xml-o o.xml",
    "check repaired.xml,model.xml",
    "why repaired.xml:280",
    "check repaired.xml:280:24",
    "-check M",
    "-m R -o out.xml",
    "-m R -d CPU",
    "convert -o R",
    "check",
    "why R norm.variance",
    "promote f32 i64 --rules pytorh --explain",
    "explain 'Arguments do not have the same element type'",
    "explain 'Argument shapes are inconsistent'",
    "cargo check R",
    "vimdiff M R",
    "verify M R --rtol=1e-3,atol=1e-5",
    "view M --port 8080",
    "diff M R --name-only",
    "convert R --overwrite-input-shape image:1,3,32,32 mask:1,100 -o o.xml",
    "convert R --input_shape 'image:[1, 3, 32, 32] mask:[1,100]' -o o.xml",
    "convert R --fp16-output -o o.xml",
    "convert R --stateful -o o.xml",
    "convert R --target LTS -o o.xml",
    "check R --target 2019",
    "stats R --target 2024.1",
];

/// Command lines of which everything that was typed belongs to the tip.
const CARRIED: &[&str] = &[
    "convert R --disable-stateful -o o.xml",
    "view R --no-browser",
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
    "check R --version 2023.1",
    "-m R -d CPU -niter 100",
    "export openvino --model R --weight-format int8 out",
    "convert R --quantize q4_0 -o o.xml",
    "convert R --set-length batch_size=2 -o o.xml",
    "convert R --static -o o.xml",
    "rewrite R --use gelu-fusion --use constfold -o o.xml",
    "rewrite R -e 'image = image / 255.0' -o o.xml",
    "rewrite R -e 'remove input mask' -o o.xml",
    "show R '.layers[] | .name'",
    "show R --format png -o graph.png",
    "promote int32 + float16 --framework torch",
];

/// Command lines of people who come from other tools, with statements and values of their kind.
const TOOLS: &[&str] = &[
    "convert R --compress fp8 -o o.xml",
    "convert R --optShapes=image:1x3x32x32,mask:1x100 -o o.xml",
    "extract R --outputs norm -o o.xml",
    "rewrite R -e 's/Relu/Gelu/' -o o.xml",
    "why R /model/norm",
    "rewrite R -e 'set stem.strides 1,1' -o o.xml",
    "rewrite R -e 'set stem.pads_begin = [0,0]' -o o.xml",
    "show R --only head",
    "show R --only norm",
    "diff -w M R",
    "verify M R --rtol=1e-3,atol=1e-5",
    "check M --autofix",
    "-f json check R",
    "R --convert",
    "convert R -ip u8 -o o.xml",
    "convert R --batch 4 -o o.xml",
    "convert R --set-shape image=[1,3,N,-2] -o o.xml",
    "simplify R b.xml",
    "rewrite R -e 'delete output X' -o o.xml",
    "rewrite R -e 'delete output probabilities' -o o.xml",
    "rewrite R -e 'rename a=b' -o o.xml",
    "rewrite R -e 'rename image=pixels' -o o.xml",
    "rewrite R -e 'insert Relu after head' -o o.xml",
    "rewrite R -e 'insert Relu(_) after head' -o o.xml",
    "rewrite R -e 'Relu(x) -> Abs(x)' -o o.xml",
    "show R --grep Conv",
    "show --grep Softmax R",
    "diff --name-only M R",
    "check M --ignore type-mismatch",
    "check M --allow type-mismatch",
    "check R --for int8-cpu",
    "reduce R -o s.xml python3 x.py",
    "rewrite R -e 'Relux(x) => Abs(x)'",
    "compress R --to bf16",
    "quantize R --quantization int8 -o o.xml",
    "convert R --quantization int8 -o o.xml",
    "delete-output R probabilities",
    "delete_output probabilities R -o o.xml",
    "set-precision R image u8",
    "set-precision R u8 -o o.xml",
    "mo --input_model R --data_type FP16 --output_dir out",
    "mo --input_model R --input image,mask --input_shape [1,3,32,32],[1,100]",
    "mo -m R --output norm",
    "mo --input_model R --mean_values image[127.5,127.5,127.5] --scale_values image[127.5]",
    "pot -q default -m R -w r.bin -d out",
    "nncf compress R --mode int4_asym --ratio 0.8 --group_size 64 -o o.xml",
    "polygraphy surgeon extract R --outputs norm:auto -o o.xml",
    "polygraphy inspect model R --show layers",
    "polygraphy convert R --fp-to-fp16 -o o.xml",
    "polygraphy run R --onnxrt --openvino --atol 1e-4",
    "polygraphy surgeon insert R --inputs head --outputs scores --op Relu -o o.xml",
    "onnxsim R o.xml --overwrite-input-shape image:1,3,32,32",
    "onnxsim R o.xml",
    "git diff M R",
    "log R",
    "infer R --json",
    "benchmark_app -m R -d CPU -hint throughput",
    "convert R --half -o o.xml",
    "convert R -q int8 -o o.xml",
    "convert R --dtype bfloat16 -o o.xml",
    "tflite_convert R -o o.xml",
    "convert '~/r.xml' -o o.xml",
    "rewrite R -e Relu(x)=>Abs(x) -o o.xml",
    "rewrite R -e 'Add(x,y) => Multiply(x,z)' -o o.xml",
    "convert R /o o2.xml",
    "typelift check R",
    "show R head scores",
    "why R --layer=norm --verbose",
    "convert R --keep_io_types --compress_to_fp16 -o o.xml",
    "mo --input_model R -s 255 --reverse_input_channels",
    "nncf quantize R --preset mixed",
    "optimum-cli export openvino --model R --weight-format int4 o",
    "convert R --int4 --group-size=64 -o o.xml",
    "convert R --set-shape mask=1x100 --batch-size 2 -o o.xml",
    "convert R --target-opset 13 -o o.xml",
    "convert R --remove-unused -o o.xml",
    "convert R --nhwc -o o.xml",
    "convert R --set-type mask=fp32 --out=o.xml --verbose=2",
    "convert --to fp16 --in R --out o.xml",
    "rewrite R -e 'remove node act' -o o.xml",
    "rewrite R -e 'rename output probabilities to probs' -o o.xml",
    "rewrite R -e 'replace Clamp with Relu' -o o.xml",
    "rewrite R -e 'add output norm' -o o.xml",
    "rewrite R -e 'cut input norm' -o o.xml",
    "rewrite R -e 'freeze mask' -o o.xml",
    "rewrite R -e 'set Constant_7 3.5' -o o.xml",
    "rewrite R -e 'Multiply(x, Divide(y,z)) => Divide(Multiply(x,y),z);' -o o.xml",
    "rewrite R -e 'SoftMax(x) = Sigmoid(x)' -o o.xml",
    "rewrite R -e 'redirect act to stem' -o o.xml",
    "check R --device=GPU.0",
    "check R --for=NPU --deny=all",
    "check -r .",
    "check R --output=json",
    "lint M --format=github-actions",
    "verify R --devices CPU,GPU",
    "verify R M --samples=three",
    "verify R M --mse 0.1",
    "compare R M --html",
    "stats R --by-type",
    "view R --svg",
    "show R --layer norm --depth 2",
    "show R -n 5",
    "infer R --set-shape image:1x3x32x32 --symbolic",
    "ovc model.onnx --output_model R --compress_to_fp16=False",
    "benchmark_app -m R -shape image[1,3,32,32] -t 10",
    "nncf compress-weights R --mode INT8_SYM --ignored-scope head",
    "convert R --mode int4 --ratio 1 --all_layers -o o.xml",
    "compile_tool -m R -d CPU",
    "pot -c config.json",
    "polygraphy inspect tensors in.npz",
    "polygraphy surgeon extract R --inputs norm --outputs scores -o o.xml",
    "polygraphy run R M --val-range [0,1] --rtol 1e-2",
    "onnxsim R o.xml --skip-fuse-bn",
    "onnxoptimizer R o.xml",
    "onnx-graphsurgeon remove R act",
    "grep Convolution R",
    "sed -i s/image/pixels/ R",
    "python -m typelift check R",
    "tf2onnx --input R --output o.onnx",
    "tflite R",
    "convert R --set-shape image=1,3,32,32 mask=1,100 -o o.xml",
    "rewrite R rename image pixels -o o.xml",
    "rewrite R -e 'fuse conv bn' -o o.xml",
    "rewrite R -e 'convert mask to f32' -o o.xml",
    "why R norm --why-not f16",
    "show R --only 'Conv*'",
    "mo --input_model R --layout nhwc --output_dir build",
    "ovc R --input [1,3,32,32],[1,100] --output_model small.xml",
    "convert R --data_type half -o o.xml",
    "convert R --precision INT8 -o o.xml",
    "compress_weights R --mode int8_sym -o o.xml",
    "nncf compress_weights R int4_sym --group-size 32 --ratio 0.6",
    "optimum-cli export openvino -m R --weight-format fp16 out",
    "polygraphy surgeon extract R --inputs head:auto:auto --outputs probabilities:auto -o sub.xml",
    "polygraphy inspect model R --show weights",
    "polygraphy surgeon sanitize R --fold-constants -o o.xml",
    "onnxsim R sim.xml --dynamic-input-shape",
    "onnxsim R sim.xml --input-shape image:1,3,32,32",
    "diff M R --color=always --quiet-output",
    "diff -u M R",
    "diff --ignore-all-space M R",
    "stats R --sort=params",
    "summary R --depth 3",
    "torchinfo R",
    "count R params",
    "head R",
    "cat R",
    "tree R",
    "ls R",
    "cp R new.xml",
    "mv R new.xml",
    "check R --strict --format=table",
    "check R -W error",
    "convert R -d f16 -o o.xml",
    "convert R --dynamic_batch -o o.xml",
    "convert R --set-shape image:[-1,3,32,32] -o o.xml",
    "convert R --input-type image:uint8 --input-layout image:nhwc -o o.xml",
    "rewrite R -e 'remove layer pool' -o o.xml",
    "rewrite R -e 'rename probabilities, scores2' -o o.xml",
    "rewrite R -e 'insert Relu before probabilities' -o o.xml",
    "rewrite R -e 'Multiply(a,b) ==> Multiply(b,a)' -o o.xml",
    "verify R M --rtol=0.01 --atol=1e-3 --num-samples 4",
    "ovc R -o out/r.xml --compress_to_fp16",
    "mo -m R --batch 1 --data_type FP16 -o out",
    "convert R --fp16 --int8 -o o.xml",
    "convert R --quantize=INT8 --output=o.xml",
    "convert R --weights-only int4 -o o.xml",
    "convert R --static-shape image=1,3,32,32 -o o.xml",
    "convert R --fix-batch 1 -o o.xml",
    "convert R --nchw-to-nhwc -o o.xml",
    "convert R --uint8-input -o o.xml",
    "convert R --opset-version 13 -o o.xml",
    "convert R --skip-layers norm --compress fp16 -o o.xml",
    "convert R --outputs norm -o o.xml",
    "convert R --exclude-node head --fp16 -o o.xml",
    "nncf quantize R --subset-size 300",
    "nncf compress R --backup-mode int8_asym --mode int4_sym -o o.xml",
    "polygraphy convert R --tf32 -o o.xml",
    "polygraphy run R M --atol 0.01 --check-error-stat median",
    "polygraphy inspect diff-tactics R",
    "onnxsim R o.xml --no-large-tensor",
    "git log R",
    "git blame R",
    "onnx2trt R -o o.engine",
    "benchmark_app -m R",
    "sort R",
    "wc R",
    "validate-model R",
    "check R --level error",
    "check R --fail-on warning",
    "check R --openvino-version 2023.1",
    "verify R M --threshold=1e-3 --device=gpu",
    "diff R M --tol 1e-3",
    "show R --type Relu",
    "show R --nodes",
    "why R --tensor norm",
    "rewrite R -e 'swap Clamp for Relu' -o o.xml",
    "rewrite R -e 'rename image -> input_image' -o o.xml",
    "rewrite R -e 'set shape image [1,3,32,32]' -o o.xml",
    "rewrite R -e 'batch 4' -o o.xml",
    "rewrite R --rule 'Clamp(x)=>Relu(x)' -o o.xml",
    "rewrite R --remove-output mask -o o.xml",
];

/// Command lines with an option in a word with its value, a misspelt name, or an expression of a program of the shell.
const SHELL: &[&str] = &[
    "--overwrite-input-shape image:1,3,32,32 R",
    "-m model.onnx -o out",
    "checkout R",
    "extract R --inputs nrom --outputs probabilites",
    "rewrite rules.rules R -o o.xml",
    "diff --cached R HEAD",
    "git diff R",
    "grep -n head R",
    "pip install typelift",
    "tail -n 20 R",
    "sed -e s/stem/conv0/ R",
    "verify R --onnxrt",
    "promote f32 + i64",
    "check models/repiared.xml",
    "rewrite R -e 'Divide(x, c: const flaot) => Multiply(x, 1 / c)' -o o.xml",
    "rewrite R -e 'Relux(x) => Abs(x)' -o o.xml",
    "rewrite R -e 'cut norm .. haed' -o o.xml",
    "rewrite R -e 'fold constants' -o o.xml",
    "rewrite R -e 'del(.layers.head)' -o o.xml",
    "rewrite R --use-all -o o.xml",
    "rewrite R --rule fuse-gelu -o o.xml",
    "verify R R --phyton=/opt/py",
    "why R head --shapes",
    "wyh R head",
    "explian stale-port",
    "completion zsh",
    "onnx-graphsurgeon R --fold-constants",
    "python -m onnxsim R o.xml",
    "onnx.checker.check_model R",
    "mo --input_model R --disable_nhwc_to_nchw",
    "mo -m R --transform LowLatency2",
    "mo --input_model R --input_shape [1,3,32,32],[1,100] --mean_values image[123,117,104]",
    "check R --output report.sarif",
    "diff M R --ignore weights",
    "polygraphy surgeon extract R --inputs norm:[1,64]:float32 --outputs head:auto -o sub.xml",
    "git difftool HEAD~1 R",
    "git mv R new.xml",
    "core.read_model R",
    "convert R --int4-asym -o o.xml",
    "rewrite R -s 'rename head h' -o o.xml",
    "check --all-models .",
    "check R --only type-mismatch",
    "show head R",
    "show R --depth 2 head",
    "why norm R",
    "compres R",
    "stats R --sort-by size",
    "verify M R --input in.npz",
];

/// Wishes in words, and operands in another order or form.
const WISHES: &[&str] = &[
    "rewrite R -e 'make batch static 1' -o o.xml",
    "rewrite R -e 'print all Convolution' -o o.xml",
    "rewrite R -e 'cast image to u8' -o o.xml",
    "rewrite R -e 'swap inputs image and mask' -o o.xml",
    "rewrite R -e 'mark scores as output' -o o.xml",
    "rewrite R -e 'normalize image by 127.5' -o o.xml",
    "rewrite R -e 'set image shape [1,3,32,32]' -o o.xml",
    "rewrite R -e 'freeze mask to 1' -o o.xml",
    "rewrite R -e 'transpose image to NHWC' -o o.xml",
    "rewrite R -e 'rename head logits; rename act swish' -o o.xml",
    "why type of scores in R",
    "convert image=u8 R -o o.xml",
    "convert R -o o.xml --set-length batch 4",
    "explain R type-mismatch",
    "make R smaller",
    "convert R --to onnx -o out.onnx",
    "stats R --memory=2g",
    "convert R —compress f16 -o o.xml",
    "convert R --compress fp16 --but-not Softmax -o o.xml",
    "rewrite R -e 'change type of mask to f32' -o o.xml",
    "rewrite R -e 'multiply probabilities by 100' -o o.xml",
    "rewrite R -e 'add softmax at the end' -o o.xml",
    "rewrite R -e 'remove Softmax' -o o.xml",
    "rewrite R -e 'keep head in fp32' -o o.xml",
    "rewrite R -e 'list inputs' -o o.xml",
    "rewrite R -e 'fuse gelu' -o o.xml",
    "rewrite R -e 'quantize head to int8' -o o.xml",
    "rewrite R -e 'set layout NCHW for image' -o o.xml",
    "why not f16 R",
    "convert R -o o.xml --input-type image u8",
    "convert R -o o.xml --set-shape image 1 3 32 32",
    "convert R -o o.xml --compress bfloat16 --layers head",
    "graph R -o graph.png",
    "dump R head/weight",
    "infer R --format json --shape image=[1,3,32,32]",
    "rewrite R -e 'give image shape [4,3,32,32]' -o o.xml",
    "rewrite R -e 'disable act' -o o.xml",
    "rewrite R -e 'add Relu to head' -o o.xml",
    "rewrite R -e 'limit batch to 8' -o o.xml",
    "rewrite R -e 'rename all layers with prefix enc_' -o o.xml",
    "rewrite R -e 'rename head -> logits, act -> swish' -o o.xml",
    "rewrite R -e 'expose head and act' -o o.xml",
    "rewrite R -e 'undo compress' -o o.xml",
    "rewrite R -e 'keep Softmax in f32' -o o.xml",
    "rewrite R -e 'remove unused layers' -o o.xml",
    "rewrite R -e 'clamp probabilities between 0 and 1' -o o.xml",
    "rewrite R -e 'swap image and mask' -o o.xml",
    "rewrite R -e 'optimize' -o o.xml",
    "why does R have f16",
    "why scores and head R",
    "explain error type-mismatch",
    "convert R batch=1 -o o.xml",
    "convert R image=[1,3,32,32] -o o.xml",
    "convert R --keep-layers head,act --compress f16 -o o.xml",
    "convert R --out=o.xml --overwrite",
    "show R --weights head/weight",
    "infer R batch=4",
    "reduce R -- grep -q Softmax {}",
    "stats R .inputs",
    "rewrite R -e 'only blocks 0 to 3' -o o.xml",
    "rewrite R -e 'substitute Relu for Clamp' -o o.xml",
    "convert R --no-quantize head --quantize int8 -o o.xml",
    "rewrite R -e 'paint head in green' -o o.xml",
    "rewrite R -e 'remove outputs[0]' -o o.xml",
    "is R ok?",
    "check? R",
    "convert R --quantize none -o o.xml",
    "convert R --output_model small -o o.xml",
    "ovc R --output_model small --compress_to_fp16",
    "convert R --input image,mask --input_shape [1,3,32,32],[1,100] -o o.xml",
    "verify R R --input-shapes image:[1,3,32,32] mask:[1,100]",
    "infer R --shapes image=[1,3,32,32]",
    "diff --stat model.xml..repaired.xml",
    "schema check --format json -o check.json",
    "schema R",
    "completion pwsh",
    "completions pwsh",
    "verify R --reference out.npz",
    "show R --outputs",
    "list R --constants",
    "dump-weights R head/weight",
    "show R head/weight",
    "show --npy w.npy head/weight R",
    "show R M R --only Relu",
    "check R --unused",
    "upgrade R -o o.xml",
    "run R --input in.npy --device CPU",
    "man convert",
    "check lint R",
    "rewrite R --use split_gelu,sdpa_split -o o.xml",
    "rewrite R --use eliminate_nop_cast -o o.xml",
    "convert R --compress f16 --keep Conv -o o.xml",
    "why R head --axis 1",
    "why R head[1]",
    "why R head --dim 1",
    "verify R --precision fp16 --device-b CPU",
    "verify R --device CPU GPU",
    "convert R --dequantise fp16 -o o.xml",
    "convert R --set-length batch=0 -o o.xml",
    "infer R --batch 2 --seq-len 5",
    "check R --compat 2023.1",
    "check R --max-memory=512 MiB",
    "rewrite R --use cse,constant_folding -o o.xml",
    "rewrite R -e 'rename head h' 'rename act a' -o o.xml",
    "rewrite R --replace 'Softmax(x)' 'Relu(x)' -o o.xml",
    "explain type mismatch",
    "infer R --data x.npy --iterations 10",
    "show R --text F.txt",
    "reduce R test -s {} -o o.xml",
    "promote torch.float16 torch.int64",
];

/// Statements in the notation of other programs.
#[cfg(unix)]
const STATEMENTS: &[&str] = &[
    "rewrite R -e 'graph.outputs = [act]; graph.cleanup()' -o o.xml",
    "rewrite R -e 'graph.nodes.remove(act)' -o o.xml",
    "rewrite R -e 'graph.output[0].name = \"scores\"' -o o.xml",
    "rewrite R -e 'onnx.utils.extract_model(\"in.onnx\", \"out.onnx\", [\"stem\"], [\"act\"])' -o o.xml",
    "rewrite R -e 'model.metadata_props.add(key=\"author\", value=\"ann\")' -o o.xml",
    "rewrite R -e 'model.reshape([1,3,32,32])' -o o.xml",
    "rewrite R -e 'model.add_outputs(\"act\")' -o o.xml",
    "rewrite R -e 'ppp.input(\"image\").tensor().set_element_type(Type.u8).set_layout(\"NHWC\")' -o o.xml",
    "rewrite R -e 'nncf.compress_weights(model, mode=CompressWeightsMode.INT8_SYM)' -o o.xml",
    "rewrite R -e 'model.half()' -o o.xml",
    "rewrite R -e 'set Constant_7 = np.full(1, 3.5, dtype=np.float32)' -o o.xml",
    "rewrite R -e 'image /= 255' -o o.xml",
    "rewrite R -e 'input image u8 [1x3x32x32]' -o o.xml",
    "rewrite R -e 'before image = _ / 255' -o o.xml",
    "rewrite R -e 'tap act -> features' -o o.xml",
    "rewrite R -e 'rename probabilities class scores' -o o.xml",
    "rewrite R -e 'keep fp32 nor' -o o.xml",
    "rewrite R -e 'output image : f16' -o o.xml",
    "rewrite R -e 'Relu(x) -> Clip(Mul(x, 2), 0, 6)' -o o.xml",
    "rewrite R -e 'Softmax(x, dim=1) => Softmax(x) {axis: -1}' -o o.xml",
    "rewrite R -e 'after head : tf.nn.relu(_)' -o o.xml",
    "rewrite R -e 'layout probabilities = [N,C,H,W]' -o o.xml",
    "rewrite R -e 'cut from stem' -o o.xml",
    "rewrite R -e 'set rt_info model_info/model_type = detection' -o o.xml",
    "rewrite R -e 'rename_node head logits' -o o.xml",
    "rewrite R -e 'set act[0] = 0' -o o.xml",
    "rewrite R -e 'add output act as features' -o o.xml",
    "rewrite R -e 'info model_info.resize_type: standard' -o o.xml",
    "rewrite R -e 'before image : (_ - [1, 2, 3]) / 255' -o o.xml",
    "rewrite R -e 'set head = 0' -o o.xml",
    "rewrite R -e 'input image : uint8[1,32,32,3] layout NHWC' -o o.xml",
    "rewrite R -e 'input image : uint8[1,3,32,32]' -e 'before image : Convert(x, f32, 2)' -o o.xml",
    "rewrite R -e 'set rt_info model_info/model_type = \"Classification\"' -o o.xml",
    "rewrite R -e 'make_stateful mask act' -o o.xml",
    "rewrite R -e 's/stem\\.//' -o o.xml",
    "convert R --set-shape 'mask=[None,\"seq\"]' -o o.xml",
    "convert R --compress f16 --keep 'types=[\"Softmax\"]' -o o.xml",
    "rewrite R -e 'tap act' -e 'outputs = [act]' -o o.xml",
    "rewrite R -e 'keep only output probabilities' -o o.xml",
    "rewrite R -e 'input image : u8[?,32,32,3]; before image : Transpose(_, [0,3,1,2])' -o o.xml",
    "rewrite R -e 'input image : uint8[?,32,32,3]' -e 'before image : Transpose(Convert(x, f32), [0,3,1,2])' -o o.xml",
    "rewrite R -e 'input image uint8 [1,5,32,32]' -o o.xml",
    "rewrite R -e 'before image : _.permute(0, 1, 3, 2)' -o o.xml",
    "rewrite R -e 'Softmax(x) => Relu(x' -o o.xml",
    "rewrite R -e 'Add(x) => x' -o o.xml",
    "rewrite R -e 'Convert(x: ) {destination_type=} => x' -o o.xml",
    "rewrite R -e 'clip probabilities to [0, 1]' -o o.xml",
    "rewrite R -e 'graph.cleanup()' -o o.xml",
];

#[cfg(unix)]
#[test]
fn statements_of_other_programs_lead_to_ours() {
    insta::assert_snapshot!("statements", answers(STATEMENTS));
}

#[test]
fn a_wish_in_words_gets_a_command_without_losing_a_word() {
    insta::assert_snapshot!("wishes", answers(WISHES));
}

#[cfg(unix)]
#[test]
fn tips_are_quoted_for_a_unix_shell() {
    insta::assert_snapshot!("unix", answers(UNIX));
}

#[test]
fn words_of_a_shell_lead_to_the_whole_command() {
    insta::assert_snapshot!("shell", answers(SHELL));
}

#[test]
fn a_slip_in_a_word_leads_to_the_whole_command() {
    insta::assert_snapshot!("slips", answers(SLIPS));
}

#[test]
fn words_of_other_tools_get_a_whole_command() {
    insta::assert_snapshot!("tools", answers(TOOLS));
}

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
    let (mut answers, mut wrong) = (String::new(), Vec::new());
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
            // The tips are the same with and without a Python on this machine.
            .env("TYPELIFT_PYTHON", "no-python")
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
        let whole = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let help = whole.split_once("= help: ").map(|(_, help)| help).unwrap_or_default();
        for printed in help.split('`').filter_map(|part| part.strip_prefix("typelift ")) {
            wrong.extend(refusal(folder.path(), printed));
        }
        for line in shown {
            let _ = writeln!(answers, "{line}");
        }
        answers.push('\n');
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    answers
}

/// Types back a command that was printed, and returns its usage error. The command may find errors in the model, or refuse
/// what the wrong command asked for by name. Left out are `verify`, which needs OpenVINO, and a place for a word.
fn refusal(folder: &Path, printed: &str) -> Option<String> {
    let words = words(printed.split(" > ").next().unwrap()).unwrap();
    let is_place = |part: &str| part.len() > 2 && part.chars().all(|letter| letter.is_ascii_uppercase());
    let has_place = |word: &String| word.split(|letter: char| !letter.is_alphanumeric()).any(is_place);
    if !printed.contains(".xml")
        || printed.contains(" | ")
        || words[0] == "verify"
        || words.iter().any(|word| word != "OUT.xml" && has_place(word))
    {
        return None;
    }
    let copy = tempfile::tempdir().unwrap();
    for file in ["model.xml", "model.bin", "repaired.xml", "repaired.bin"] {
        std::fs::copy(folder.join(file), copy.path().join(file)).unwrap();
    }
    let output = command(copy.path(), &words.iter().map(String::as_str).collect::<Vec<_>>()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    let names = ["no such file", "did not start", "does not exist", "no open length", "a group size cannot be set"];
    let is_named = names.iter().any(|name| said.contains(name));
    (output.status.code() == Some(2) && !is_named).then(|| format!("typelift {printed}\n{said}"))
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
fn no_printed_command_writes_over_a_file_that_is_there() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("notes.txt"), "kept").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_typelift"));
    let output = command.args(["show", "--text", "notes.txt"]).current_dir(folder.path()).output().unwrap();
    let printed = String::from_utf8(output.stderr).unwrap();
    assert!(printed.contains("--format text") && !printed.contains('>'), "{printed}");
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
