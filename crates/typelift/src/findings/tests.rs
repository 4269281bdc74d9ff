//! Tests of messages: no finding depends on the words of another one.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use typelift_promote::ElementType;

use super::message::garbled::garbled;
use super::{Code, Diagnostic, FixAction, Kind, Message, message};
use crate::{Checking, Weights};

#[test]
fn other_words_change_no_finding() {
    // In an unoptimized build deeply nested bodies need more than the stack of a test thread.
    std::thread::Builder::new().stack_size(64 << 20).spawn(compare_garbled).unwrap().join().unwrap();
}

fn compare_garbled() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/fixtures");
    let mut count = 0;
    for file in files(&fixtures).into_iter().filter(|file| file.extension().is_some_and(|it| it == "xml")) {
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let text = Arc::new(text);
        let bin = fs::read(file.with_extension("bin")).ok();
        let plain = findings(&text, bin.as_deref());
        let other = garbled(|| findings(&text, bin.as_deref()));
        let data = |found: &[Diagnostic]| found.iter().map(data).collect::<Vec<_>>();
        assert_eq!(data(&plain), data(&other), "{}", file.display());
        let words = |found: &[Diagnostic]| found.iter().map(ToString::to_string).collect::<Vec<_>>();
        count += words(&plain).iter().zip(garbled(|| words(&other))).filter(|(it, other)| *it != other).count();
    }
    assert!(count > 100, "only {count} findings say something else");
}

/// Returns the data of a finding without its messages.
fn data(found: &Diagnostic) -> String {
    let spans: Vec<_> = found.labels.iter().map(|label| label.span).collect();
    let related: Vec<_> = found.related.iter().map(|it| (&it.layer, it.element_type, &it.shape)).collect();
    let fixes: Vec<_> = found.fixes.iter().filter(|fix| !matches!(fix.action, FixAction::Advise(_))).collect();
    let Diagnostic { severity, code, about, layer, consequences, .. } = found;
    format!("{severity:?} {code:?} {about:?} {layer:?} {spans:?} {related:?} {consequences:?} {fixes:?}")
}

fn findings(text: &Arc<String>, bin: Option<&[u8]>) -> Vec<Diagnostic> {
    let weights = bin.map_or_else(Weights::none, |bytes| Weights::from_bytes(bytes.to_vec()));
    Checking::default().run(text, &weights).findings
}

/// A [`Message`](super::Message) has no methods of text, so code that reads a sentence renders it first.
#[test]
fn no_code_reads_a_sentence() {
    let words = ["message", "help", "note", "notes", "reason", "label"];
    let ways = ["", ".as_str()", ".as_deref()", ".to_string()", "[0].to_string()", "[0]"];
    let readers = "starts_with ends_with contains strip_prefix strip_suffix split split_once rsplit find rfind replace \
        replacen trim matches chars lines parse eq_ignore_ascii_case template arguments";
    let mut faults = Vec::new();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for file in ["typelift/src", "typelift-cli/src", "typelift-py/src"].iter().flat_map(|it| files(&crates.join(it))) {
        let path = file.to_string_lossy();
        let is_code = path.ends_with(".rs") && !path.ends_with("tests.rs");
        let Ok(text) = fs::read_to_string(&file) else { continue };
        let code: String = text.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
        let text = code.replace(char::is_whitespace, "");
        let named = words.iter().flat_map(|word| ways.iter().map(move |way| format!("{word}{way}")));
        let calls = named.flat_map(|word| readers.split_whitespace().map(move |reader| format!("{word}.{reader}(")));
        let comparisons = words.iter().map(|word| format!(".{word}=="));
        let is_word = |at: usize| !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        // Text is an argument of its own, not a part of a ready-made sentence.
        let sentences = ["Text(format!(", "Text(&format!("].map(str::to_owned);
        for call in calls.chain(comparisons).chain(sentences).filter(|_| is_code) {
            faults.extend(text.match_indices(&call).filter(|(at, _)| is_word(*at)).map(|_| format!("{path}: {call}")));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// The arguments come back whole, whatever text they hold.
#[test]
fn arguments_of_any_text_come_back() {
    let odd = "a{}b:3\u{1b}[0m\n\u{202e}é";
    let message = message!("`{}` has {} of {}, {}"; odd, 2, ElementType::F32, Message::new("not {}", &[&odd]));
    let words = format!("`{odd}` has 2 of f32, not {odd}");
    assert_eq!(message.to_string(), words);
    assert_eq!(serde_json::to_value(&message).unwrap(), words);
    let found: Vec<_> = message.arguments().map(|it| (it.kind, it.text.to_owned())).collect();
    let inner = format!("not {odd}");
    let expected = [(Kind::Name, odd), (Kind::Number, "2"), (Kind::Type, "f32"), (Kind::Message, &inner)];
    assert_eq!(found, expected.map(|(kind, text)| (kind, text.to_owned())));
}

/// Two layers with the same mistake have findings with one template.
#[test]
fn findings_are_grouped_by_template() {
    let text = Arc::new("<net name='n' version='11'><layers><layer id='0' name='x'/><layer id='1' type='Abs' version='opset1'/></layers></net>".to_owned());
    let found = findings(&text, None);
    let missing: Vec<_> = found.iter().filter(|it| it.code == Code::MissingAttribute).collect();
    let (first, rest) = missing.split_first().unwrap();
    assert!(!rest.is_empty() && rest.iter().all(|it| it.message.template() == first.message.template()), "{found:?}");
    assert!(rest.iter().any(|it| it.message != first.message));
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        match path.is_dir() {
            true => found.extend(files(&path)),
            false => found.push(path),
        }
    }
    found.sort();
    found
}
