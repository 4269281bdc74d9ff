//! The Python package has every option of `convert`. `UPDATE_DOCS=1` adds new ones to `Model.convert`, with the help of
//! the program.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use typelift::convert::Conversion;

/// Returns the names and the lines of the parameters in a signature, or in the section of a docstring.
fn parameters(lines: &str, indent: &str) -> BTreeSet<String> {
    let names = lines.lines().filter_map(|line| line.strip_prefix(indent)?.split_once(':').map(|(name, _)| name));
    let is_name = |name: &&str| name.chars().all(|it| it == '_' || it.is_ascii_alphanumeric());
    names.filter(is_name).filter(|name| *name != "progress").map(str::to_owned).collect()
}

/// Returns the help of an option as one line; empty if the program has none of that name.
fn help(option: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_typelift")).args(["convert", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let flag = format!("--{}", option.replace('_', "-"));
    let mut lines = help.lines().skip_while(|line| line.split_whitespace().next() != Some(&flag)).skip(1);
    let text = lines.by_ref().take_while(|line| line.starts_with("          ")).map(str::trim);
    text.collect::<Vec<_>>().join(" ")
}

/// Returns the Python type and default of an option, by the values that it accepts.
fn annotation(option: &str) -> &'static str {
    let accepts = |value: &str| Conversion::from_options(&format!(r#"{{"{option}": {value}}}"#)).is_ok();
    match () {
        () if accepts("true") => "bool = False",
        () if accepts("1") => "Optional[float] = None",
        () if accepts("[]") => "Iterable[str] = ()",
        () => "Optional[str] = None",
    }
}

#[test]
fn python_converts_with_every_option() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../typelift-py/python/typelift/_model.py");
    let Ok(text) = fs::read_to_string(&path) else { return };
    let (before, rest) = text.split_once("    def convert(\n").unwrap();
    let (signature, rest) = rest.split_once("    ) -> Conversions:").unwrap();
    let (head, rest) = rest.split_once("        Args:\n").unwrap();
    let (said, after) = rest.split_once("        Returns:\n").unwrap();
    let options: BTreeSet<_> = Conversion::option_names().into_iter().map(str::to_owned).collect();
    let (known, described) = (parameters(signature, "        "), parameters(said, "            "));
    let gone: Vec<_> = known.union(&described).filter(|name| !options.contains(*name)).collect();
    assert!(gone.is_empty(), "Model.convert has parameters that are no options: {gone:?}");

    let (mut new_signature, mut new_said) = (signature.to_owned(), said.to_owned());
    for option in options.difference(&known) {
        let line = format!("        {option}: {},\n        progress:", annotation(option));
        new_signature = new_signature.replace("        progress:", &line);
    }
    for option in options.difference(&described) {
        let line = format!("            {option}: {}.\n            progress:", help(option));
        new_said = new_said.replace("            progress:", &line);
    }
    let updated = [
        before,
        "    def convert(\n",
        &new_signature,
        "    ) -> Conversions:",
        head,
        "        Args:\n",
        &new_said,
        "        Returns:\n",
        after,
    ]
    .concat();
    if std::env::var_os("UPDATE_DOCS").is_some() && updated != text {
        fs::write(&path, &updated).unwrap();
    } else {
        assert!(updated == text, "Model.convert lacks options; UPDATE_DOCS=1 adds them");
    }
}
