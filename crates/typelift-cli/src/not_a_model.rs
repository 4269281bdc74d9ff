//! Advice for files and directories that are given in place of a model.

use std::path::Path;

use typelift::findings::shell_word;

/// Endings of files that are given in place of a model, with the advice.
const FILES: &[(&[&str], &str)] = &[
    (&[".bin"], "`FILE` holds weights: give the .xml next to it"),
    (
        &[".blob", ".cache", ".engine", ".plan", ".trt"],
        "a compiled model holds no graph: give the .xml that it was compiled from",
    ),
    (&[".onnx", ".pb", ".tflite", ".pdmodel"], "`ovc FILE` converts it to OpenVINO IR, which typelift reads"),
    (
        &[".pt", ".pt2", ".pth", ".torchscript"],
        "`FILE` is a model of PyTorch, or weights of one: load it there, and `openvino.save_model(openvino.convert_model(model), \
         \"OUT.xml\")` writes OpenVINO IR, which typelift reads",
    ),
    (
        &[".gguf", ".safetensors"],
        "`FILE` holds weights: `optimum-cli export openvino --model FOLDER OUT` converts the model of Hugging Face that they \
         belong to, to OpenVINO IR, which typelift reads",
    ),
    (
        &[".h5", ".hdf5", ".keras"],
        "load it in Keras, `model.export(\"FOLDER\")`, and `ovc FOLDER` converts it to OpenVINO IR, which typelift reads",
    ),
    (&[".caffemodel", ".mlmodel", ".mlpackage", ".ort", ".params", ".prototxt"], OTHER),
    (&[".ckpt", ".pbtxt", ".pdiparams"], OTHER),
    (
        &[".npy", ".npz"],
        "`FILE` holds arrays, which `numpy.load` reads: `typelift verify --inputs FILE A.xml B.xml` runs models on them",
    ),
    (
        &[".7z", ".bz2", ".gz", ".rar", ".tar", ".tgz", ".xz", ".zip", ".zst"],
        "`FILE` is packed: unpack it, and give the .xml in it",
    ),
    (&[".crdownload", ".download", ".part", ".partial"], "an unfinished download: get the .xml and its .bin again"),
    (&[".rules"], "`FILE` has statements: `typelift rewrite --rules FILE MODEL.xml -o OUT.xml` applies them"),
    (
        &[".csv", ".html", ".json", ".log", ".md", ".txt", ".yaml", ".yml"],
        "give the .xml of a model, with its .bin next to it",
    ),
];

const OTHER: &str =
    "convert it to OpenVINO IR first, with `openvino.convert_model` or optimum-cli: typelift reads .xml with .bin";

/// Files of a model of a hub.
const HUB: [&str; 2] = ["config.json", "model_index.json"];

const MOST_FILES: usize = 10_000;

/// Advice for a file that is given in place of a model, by its ending.
pub(crate) fn file(path: &str) -> Option<String> {
    let lower = path.to_ascii_lowercase();
    if let Some(folder) = Path::new(path).parent().filter(|_| HUB.iter().any(|name| lower.ends_with(name))) {
        let own = folder.join("openvino_model.xml");
        return Some(if own.is_file() { format!("give `{}`", own.display()) } else { self::folder(folder) });
    }
    let (_, advice) = FILES.iter().find(|(endings, _)| endings.iter().any(|ending| lower.ends_with(ending)))?;
    Some(advice.replace("FILE", &shell_word(path)))
}

/// True for a file of another format, which can be converted to IR.
pub(crate) fn is_other_format(path: &str) -> bool {
    file(path).is_some_and(|advice| advice.contains("OpenVINO IR"))
}

/// Advice for a directory that has no model.
pub(crate) fn folder(path: &Path) -> String {
    let files = std::fs::read_dir(path).into_iter().flatten().flatten().take(MOST_FILES).map(|entry| entry.path());
    let mut advice = files.filter_map(|found| file(&found.to_string_lossy()));
    let saved = path.join("saved_model.pb").is_file().then(|| path.to_string_lossy());
    let own =
        saved.map(|folder| format!("`ovc {}` converts it to OpenVINO IR, which typelift reads", shell_word(&folder)));
    let of_hub = HUB.iter().any(|name| path.join(name).is_file());
    let of_hub = of_hub.then(|| shell_word(&path.to_string_lossy()).into_owned());
    let own = own.or_else(|| {
        of_hub.map(|folder| format!("`optimum-cli export openvino --model {folder} OUT` converts it to OpenVINO IR"))
    });
    let own = own.or_else(|| file(&path.to_string_lossy())).or_else(|| advice.next());
    own.unwrap_or_else(|| "give a folder that has models: each is an .xml with a .bin".to_owned())
}
