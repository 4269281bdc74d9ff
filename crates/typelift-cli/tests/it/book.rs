//! The pages of `docs` form a book: all are listed, every link is valid, and the reference matches the program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

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

/// Returns the links and pictures of a page, as a reader of CommonMark sees them.
fn links(text: &str) -> Vec<String> {
    let links = Parser::new_ext(text, Options::ENABLE_TABLES).filter_map(|event| match event {
        Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => Some(dest_url.to_string()),
        _ => None,
    });
    links.filter(|link| !link.starts_with("http")).collect()
}

/// Returns the headings of a page, as a reader of CommonMark sees them.
fn headings(text: &str) -> Vec<String> {
    let (mut headings, mut is_open) = (Vec::new(), false);
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Heading { .. }) => {
                is_open = true;
                headings.push(String::new());
            }
            Event::End(TagEnd::Heading(_)) => is_open = false,
            Event::Text(part) | Event::Code(part) if is_open => *headings.last_mut().unwrap() += &part,
            _ => {}
        }
    }
    headings
}

/// Returns the anchors of a page's headings.
fn anchors(text: &str) -> Vec<String> {
    let anchor = |heading: &String| {
        let words = heading.trim().to_lowercase();
        let kept = words.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    headings(text).iter().map(anchor).collect()
}

/// A fence that is not closed, or is closed after other text on its line, swallows the next headings.
#[test]
fn every_heading_and_fence_is_one_for_a_parser() {
    let readme = std::fs::read_to_string(root().join("README.md")).unwrap();
    for (page, text) in pages().into_iter().chain([("README.md".to_owned(), readme)]) {
        let mut is_code = false;
        let mut written = 0;
        for line in text.lines() {
            is_code ^= line.trim_start().starts_with("```");
            written += usize::from(!is_code && line.starts_with('#'));
            assert!(!line.ends_with("```") || line.trim_start().starts_with("```"), "{page}: {line}");
        }
        assert!(!is_code, "{page}: a fence is not closed");
        assert_eq!(headings(&text).len(), written, "{page}");
    }
}

#[test]
fn every_page_is_in_the_book() {
    let pages = pages();
    let summary = links(&pages["SUMMARY.md"]);
    for page in pages.keys().filter(|page| *page != "SUMMARY.md") {
        assert!(summary.contains(page), "docs/SUMMARY.md does not list {page}");
    }
}

#[test]
fn every_link_leads_somewhere() {
    let pages = pages();
    let mut faults = Vec::new();
    for (page, text) in &pages {
        for link in links(text) {
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
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
        let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
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
    for code in typelift::findings::Code::ALL.iter().filter(|code| code.name().starts_with("program-")) {
        let _ = write!(page, "\n## {code}\n\n{}", typelift::programs::requirements(*code));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, &page).unwrap();
    } else {
        assert!(page == written, "docs/programs.md is not what the rules say: run with UPDATE_DOCS=1");
    }
}
