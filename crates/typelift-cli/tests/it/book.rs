//! The pages of `docs` form a book: all are listed, every link is valid, and the reference matches the program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::commands;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Returns the pages by name, with their text.
fn pages() -> BTreeMap<String, String> {
    let files = std::fs::read_dir(root().join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = files.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect()
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_str().unwrap().to_owned()
}

/// Returns the text outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    text.split("```").step_by(2)
}

/// Returns the links and pictures of a text.
fn links(text: &str) -> Vec<&str> {
    let ends = prose(text).flat_map(|part| part.split("](").skip(1));
    ends.map(|rest| rest.split(')').next().unwrap()).filter(|link| !link.starts_with("http")).collect()
}

/// Returns the anchors of a text's headings.
fn anchors(text: &str) -> Vec<String> {
    let headings = prose(text).flat_map(str::lines).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let words = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings.map(anchor).collect()
}

#[test]
fn every_page_is_in_the_book() {
    let pages = pages();
    let summary = links(&pages["SUMMARY.md"]);
    for page in pages.keys().filter(|page| *page != "SUMMARY.md") {
        assert!(summary.contains(&page.as_str()), "docs/SUMMARY.md does not list {page}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut faults = Vec::new();
    for (page, text) in &pages {
        for link in links(text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { page } else { file };
            let leads = match pages.get(target) {
                Some(text) => anchor.is_empty() || anchors(text).iter().any(|known| known == anchor),
                // The book contains this folder and nothing else.
                None => !target.starts_with("..") && root().join("docs").join(target).exists(),
            };
            if !leads {
                faults.push(format!("docs/{page}: {link}"));
            }
        }
    }
    for link in links(&std::fs::read_to_string(root().join("README.md")).unwrap()) {
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let path = root().join(file);
        let text = || std::fs::read_to_string(&path).unwrap();
        if !path.exists() || !anchor.is_empty() && !anchors(&text()).iter().any(|known| known == anchor) {
            faults.push(format!("README.md: {link}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_page_of_commands_is_their_help() {
    let mut page = "# Commands\n\nThe output of `typelift COMMAND --help` for each command.\n".to_owned();
    for verb in commands::names() {
        let _ = write!(page, "\n## {verb}\n\n```text\n{}\n```\n", commands::printed(&[&verb, "--help"]).trim_end());
    }
    let path = root().join("docs/commands.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == written, "docs/commands.md is not what the program says: run with UPDATE_DOCS=1");
}

#[test]
fn the_page_of_programs_has_every_requirement() {
    let path = root().join("docs/programs.md");
    let written = std::fs::read_to_string(&path).unwrap();
    let (intro, _) = written.split_once("# Requirements\n").unwrap();
    let mut page = format!("{intro}# Requirements\n");
    for code in typelift::Code::ALL.iter().filter(|code| code.name().starts_with("program-")) {
        let _ = write!(page, "\n## {code}\n\n{}", typelift::programs::requirements(*code));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    } else {
        assert!(page == written, "docs/programs.md is not what the rules say: run with UPDATE_DOCS=1");
    }
}
