//! Measures how plain the prose of the repository is, and fails above the limits.
//!
//! Three figures are measured for comments, documents and messages of each area. *Headless* paragraphs begin with a clause
//! or a pronoun in place of a subject: "What is …", "Whether …", "It …". *Long* sentences have more than 28 words.
//! *Private* words are ours where OpenVINO's users have another one. The lists below have the words to write.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Percent of paragraphs.
const MOST_HEADLESS: f64 = 2.0;
/// Percent of sentences.
const MOST_LONG: f64 = 4.0;
/// Words in 1,000.
const MOST_PRIVATE: f64 = 0.5;
/// Words of the longest sentence that is not long.
const SENTENCE: usize = 28;
/// Smaller areas count in the total only.
const LEAST_WORDS: usize = 4000;

const HEADS: &[&str] = &[
    "What", "Whatever", "Whether", "Who", "Whoever", "Whose", "Those", "These", "That", "As", "How", "It", "Its",
    "They", "Their", "One", "Others", "Another", "None", "All", "Where", "Wherever", "Some", "Which",
];

/// Beginnings with one of these words that have a subject.
const SUBJECTS: &[&str] = &[
    "All the ",
    "All of the ",
    "One of the",
    "One row",
    "One per",
    "One line",
    "One file ",
    "That is ",
    "Which is ",
    "How to ",
    "As a ",
    "As an ",
    "As the ",
    "As of ",
    "As in ",
    "None if",
    "Some of the ",
    "It is an error",
    "It panics",
    "These are",
    "These two",
    "These three",
    "Another ",
];

/// Words that the field has no use for, with the words to write.
const PRIVATE: &[(&str, &[&str])] = &[
    ("fix", &["mend", "mends", "mended", "mending", "mender"]),
    ("unknown operation, third party", &["stranger", "strangers"]),
    ("sibling block", &["sister", "sisters"]),
    ("hard-coded", &["baked"]),
    ("next to, compared with", &["beside"]),
    ("after", &["behind"]),
    ("removed", &["gone", "goes away", "goes too", "go too"]),
    ("trusted", &["witness", "witnesses", "believe", "believed"]),
    ("root cause, consequence", &["echo", "echoes", "blame", "blames", "blamed", "absorbed", "victim", "victims"]),
    ("data path", &["ways of weights", "ways of the weights", "ways of its weights", "ways of values"]),
    ("inline, replace in place", &["graft", "grafts", "grafted", "morph", "morphs", "morphed"]),
    ("module", &["room", "rooms", "house"]),
    ("the verb itself", &["looked at", "is about", "made of", "come of", "comes of", "make use of", "makes use of"]),
    ("nothing", &["nearly so", "merely", "surely", "as it stands", "where it is due"]),
];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Comments,
    Documents,
    Messages,
}

#[derive(Default)]
struct Figures {
    words: usize,
    paragraphs: usize,
    sentences: usize,
    headless: Vec<String>,
    long: Vec<String>,
    private: Vec<String>,
}

impl Figures {
    fn add(&mut self, place: &str, kind: Kind, text: &str) {
        let plain = without_code(text);
        self.paragraphs += 1;
        self.words += plain.split_whitespace().count();
        if kind != Kind::Messages && is_headless(&plain) {
            self.headless.push(format!("{place}: {plain}"));
        }
        for sentence in plain.replace("! ", ". ").replace("? ", ". ").split(". ") {
            self.sentences += 1;
            if sentence.split_whitespace().count() > SENTENCE {
                self.long.push(format!("{place}: {sentence}"));
            }
        }
        // Words are compared between spaces, without punctuation.
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '-' || letter == '\'' || letter == '_';
        let words = plain.to_lowercase().replace(|letter| !is_part(letter), " ");
        let words = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
        for (plainer, ours) in PRIVATE {
            for word in ours.iter().filter(|word| words.contains(&format!(" {word} "))) {
                self.private.push(format!("{place}: `{word}`, write {plainer}: {plain}"));
            }
        }
    }

    fn rates(&self) -> [(&'static str, f64, f64, &[String]); 3] {
        let rate = |found: &[String], of: usize, unit: f64| unit * found.len() as f64 / of.max(1) as f64;
        [
            ("headless", rate(&self.headless, self.paragraphs, 100.0), MOST_HEADLESS, &self.headless),
            ("long", rate(&self.long, self.sentences, 100.0), MOST_LONG, &self.long),
            ("private", rate(&self.private, self.words, 1000.0), MOST_PRIVATE, &self.private),
        ]
    }
}

/// Replaces code by one word, and links by their text.
fn without_code(text: &str) -> String {
    let code = text.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "x" });
    let mut plain: String = code.collect();
    while let Some(at) = plain.find("](") {
        let Some(end) = plain[at..].find(')') else { break };
        let start = plain[..at].rfind('[').unwrap_or(at);
        plain =
            format!("{}{}{}", &plain[..start], plain.get(start + 1..at).unwrap_or_default(), &plain[at + end + 1..]);
    }
    plain
}

fn is_headless(plain: &str) -> bool {
    let first = plain.split(|letter: char| !letter.is_alphanumeric() && letter != '\'').next().unwrap_or_default();
    let has_subject =
        plain.strip_prefix("All ").and_then(|rest| rest.split(' ').next()).is_some_and(|it| it.ends_with('s'));
    HEADS.contains(&first) && !has_subject && !SUBJECTS.iter().any(|subject| plain.starts_with(subject))
}

/// Passes the paragraphs of a comment or document on, without code blocks, headings, tables and lines in columns.
fn paragraphs(lines: &[(usize, &str)], found: &mut dyn FnMut(usize, &str)) {
    let (mut is_code, mut text, mut start) = (false, String::new(), 0);
    for &(number, line) in lines.iter().chain([&(0, "")]) {
        let mut line = line.trim();
        if line.starts_with("```") {
            is_code = !is_code;
            line = "";
        } else if is_code
            || line.contains("    ")
            || ["|", "#", ">>>", "<", "![", "[`", "---"].iter().any(|it| line.starts_with(it))
        {
            line = "";
        }
        let numbered =
            line.split_once(". ").filter(|(it, _)| !it.is_empty() && it.bytes().all(|it| it.is_ascii_digit()));
        let item = line.strip_prefix("- ").or(line.strip_prefix("* ")).or(numbered.map(|(_, rest)| rest));
        if item.is_some() || line.is_empty() {
            if !text.is_empty() {
                found(start, &text);
            }
            text.clear();
        }
        let line = item.unwrap_or(line);
        if !line.is_empty() {
            if text.is_empty() {
                start = number;
            } else {
                text.push(' ');
            }
            text += line;
        }
    }
}

/// Passes the text after `marker` on, of lines that follow each other.
fn comments<'a>(source: &'a str, marker: &dyn Fn(&'a str) -> Option<&'a str>, found: &mut dyn FnMut(usize, &str)) {
    let mut block = Vec::new();
    for (number, line) in (1..).zip(source.lines().chain([""])) {
        match marker(line.trim()) {
            Some(text) => block.push((number, text)),
            None => paragraphs(&std::mem::take(&mut block), found),
        }
    }
}

fn rust_comment(line: &str) -> Option<&str> {
    let text = line.strip_prefix("//")?.trim_start_matches(['/', '!']);
    (text.is_empty() || text.starts_with(' ')).then_some(text)
}

fn script_comment(line: &str) -> Option<&str> {
    line.strip_prefix("# ").or((line == "#").then_some(""))
}

/// Passes docstrings on: strings in triple quotes at the start of a line.
fn docstrings(source: &str, found: &mut dyn FnMut(usize, &str)) {
    let (mut is_inside, mut is_docstring, mut number) = (false, false, 1);
    for part in source.split("\"\"\"") {
        if is_inside && is_docstring {
            let lines: Vec<_> = (number..).zip(part.lines()).collect();
            paragraphs(&lines, found);
        }
        is_docstring = part.rsplit('\n').next().unwrap_or_default().trim().is_empty();
        number += part.matches('\n').count();
        is_inside = !is_inside;
    }
}

/// Passes string literals of at least four words on, up to the unit tests.
fn messages(source: &str, found: &mut dyn FnMut(usize, &str)) {
    for (number, line) in (1..).zip(source.lines()) {
        if line.trim() == "#[cfg(test)]" {
            return;
        }
        if line.trim().starts_with("//") {
            continue;
        }
        for text in line.replace("\\\"", "'").split('"').skip(1).step_by(2) {
            let words = text.split(|it: char| !it.is_ascii_alphabetic()).filter(|word| word.len() > 1).count();
            if words >= 4 && !["</", "\\u", "::", "=>"].iter().any(|code| text.contains(code)) {
                found(number, text);
            }
        }
    }
}

/// Returns the area of a file: a crate, the tests, Python, scripts or documents.
fn area(path: &str) -> String {
    let has = |part: &str| path.contains(part);
    match () {
        () if path.ends_with(".md") => "documents".to_owned(),
        () if path.ends_with(".rs") && ["/tests/", "/benches/", "/examples/", "fuzz/"].iter().any(|it| has(it)) => {
            "tests".to_owned()
        }
        () if path.ends_with(".rs") => path.split('/').nth(1).unwrap_or_default().to_owned(),
        () if has("typelift-py/") => "Python".to_owned(),
        () => "scripts".to_owned(),
    }
}

const SKIPPED: &[&str] = &["target", "node_modules", "snapshots", ".venv", "__pycache__", "corpus", "artifacts"];

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.unwrap().path()) {
        if path.is_dir() {
            if !SKIPPED.iter().any(|name| path.ends_with(name)) {
                files(&path, found);
            }
        } else {
            found.push(path);
        }
    }
}

fn measure(root: &Path) -> BTreeMap<(&'static str, String), Figures> {
    let mut all = Vec::new();
    for folder in ["crates", "docs", "fuzz", ".ci", "testdata/oracle", "testdata/tutorial"] {
        files(&root.join(folder), &mut all);
    }
    all.extend(["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md"].map(|name| root.join(name)));
    let mut figures = BTreeMap::<_, Figures>::new();
    for file in all {
        let path = file.strip_prefix(root).unwrap().to_string_lossy().replace('\\', "/");
        let is_data = path.starts_with("testdata") && !path.ends_with(".py");
        let is_script = path.starts_with(".ci/") || path.ends_with(".py") || path.ends_with(".pyi");
        if is_data || file.is_symlink() || !is_script && !path.ends_with(".rs") && !path.ends_with(".md") {
            continue;
        }
        let Ok(source) = std::fs::read_to_string(&file) else { continue };
        let mut add = |kind, number: usize, text: &str| {
            let name = match kind {
                Kind::Comments => "comments",
                Kind::Documents => "documents",
                Kind::Messages => "messages",
            };
            for area in [area(&path), "all".to_owned()] {
                figures.entry((name, area)).or_default().add(&format!("{path}:{number}"), kind, text);
            }
        };
        if path.ends_with(".md") {
            let lines: Vec<_> = (1..).zip(source.lines()).collect();
            paragraphs(&lines, &mut |number, text| add(Kind::Documents, number, text));
        } else if path.ends_with(".rs") {
            comments(&source, &rust_comment, &mut |number, text| add(Kind::Comments, number, text));
            if area(&path) != "tests" && !path.ends_with("tests.rs") {
                messages(&source, &mut |number, text| add(Kind::Messages, number, text));
            }
        } else {
            comments(&source, &script_comment, &mut |number, text| add(Kind::Comments, number, text));
            if !path.starts_with(".ci/") {
                docstrings(&source, &mut |number, text| add(Kind::Comments, number, text));
            }
        }
    }
    figures
}

/// `PROSE=headless` (or `long`, `private`) also prints the places.
#[test]
fn prose_is_plain() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let figures = measure(&root);
    let listed = std::env::var("PROSE").unwrap_or_default();
    let (mut table, mut over, mut places) = (String::new(), String::new(), String::new());
    for ((kind, area), figures) in &figures {
        table += &format!("{kind:10} {area:16} {:7} words", figures.words);
        for (name, rate, most, found) in figures.rates() {
            table += &format!("  {name} {rate:5.2}");
            if area == "all" && listed == name {
                found.iter().for_each(|place| places += &format!("{place}\n"));
            }
            if rate > most && (area == "all" || figures.words >= LEAST_WORDS) {
                over += &format!("{kind} of {area}: {name} {rate:.2}, more than {most}; for example\n");
                found.iter().take(5).for_each(|place| over += &format!("  {place}\n"));
            }
        }
        table.push('\n');
    }
    assert!(figures.len() >= 10, "{table}");
    assert!(over.is_empty() && places.is_empty(), "{places}{over}{table}");
}

#[test]
fn the_measure_finds_what_is_not_plain() {
    let mut figures = Figures::default();
    for text in [
        "What a layer is.",
        "Returns a layer beside `another`.",
        "Whether it is a [link](to.md).",
        "All layers are listed. It is a fine second sentence.",
        "How to read a model.",
        &"word ".repeat(29),
    ] {
        figures.add("here", Kind::Comments, text);
    }
    assert_eq!(figures.rates().map(|(_, _, _, found)| found.len()), [2, 1, 1]);
    let mut found = Vec::new();
    let source = "/// One.\n///\n/// ```\n/// code\n/// ```\nfn f() {}\n// Two,\n// three.\n";
    comments(source, &rust_comment, &mut |number, text| found.push((number, text.to_owned())));
    assert_eq!(found, [(1, "One.".to_owned()), (7, "Two, three.".to_owned())]);
    found.clear();
    messages(
        "let x = \"one two three four\";\n// \"five six seven eight\"\n#[cfg(test)]\n\"one two three four\"",
        &mut |at, text| {
            found.push((at, text.to_owned()));
        },
    );
    assert_eq!(found, [(1, "one two three four".to_owned())]);
}
