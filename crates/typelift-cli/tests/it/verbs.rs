//! What every verb is asked about a model, for tests and for `examples/damage`.

/// What reads a model; `-o` gets a file of its own.
pub(crate) const VERBS: &[&[&str]] = &[
    &["check", "model.xml"],
    &["check", "--all", "--target", "2024.6", "--format", "sarif", "model.xml"],
    &["check", "--format", "json", "model.xml"],
    &["convert", "model.xml", "-o", "out.xml"],
    &["convert", "--align", "openvino", "--promote-unsafe", "--canonical", "model.xml", "-o", "out.xml"],
    &["convert", "--align", "pytorch", "--target", "2024.6", "model.xml", "-o", "out.xml"],
    &["convert", "--align", "off", "--eliminate-converts", "model.xml", "-o", "out.xml"],
    &["rewrite", "--use", "common-subexpressions", "model.xml", "-o", "out.xml"],
    &["infer", "--format", "json", "model.xml"],
    &["show", "model.xml"],
    &["show", "--fold-constants", "--format", "dot", "model.xml"],
    &["stats", "--format", "json", "model.xml"],
    &["diff", "model.xml", "model.xml"],
    &["why", "--all", "model.xml", "*"],
    &["view", "model.xml", "-o", "page.html"],
];
