//! The modules of the library use each other in one direction.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Folders of the library in the order of the data. Each uses only those before it.
const ORDER: &[&str] = &[
    "base",
    "model",
    "findings",
    "text",
    "ops",
    "infer",
    "edit",
    "symbols",
    "promotion",
    "precision",
    "check",
    "rewrite",
    "convert",
    "programs",
    "explain",
];

/// Functions that change a graph without being public edits, and the modules that may call them: those that read, infer
/// and edit graphs.
const CHANGES: &[(&str, &[&str])] = &[
    ("add_layer", &["edit"]),
    ("adopt", &["edit"]),
    ("append", &["text", "rewrite"]),
    ("change", &["edit"]),
    ("commit", &["edit"]),
    ("disconnect", &["text"]),
    ("enter", &["edit"]),
    ("feed", &["edit"]),
    ("feed_all", &["edit"]),
    ("free_name", &["edit"]),
    ("ignore", &["text"]),
    ("index_layers", &["text", "rewrite"]),
    ("join", &["edit"]),
    ("layer_mut", &["text", "rewrite", "infer", "edit"]),
    ("mark_ports_changed", &["infer"]),
    ("move_uses", &["edit"]),
    ("name_output", &["edit"]),
    ("resize_inputs", &["edit"]),
    ("roll_back", &["edit"]),
    ("set_outputs", &["edit"]),
    ("take_all", &["edit"]),
    ("tensor_called", &["edit"]),
    ("to_mut", &["edit"]),
    ("wire", &["text", "rewrite"]),
];

/// Folders with modules that use each other in a circle. Matches, conditions and values in a pattern depend on each other.
const CIRCLES: &[&str] = &[];

/// Path of a module or an item from the root of its crate.
type ItemPath = Vec<String>;

/// A module: the paths that its code names, without tests, and the names that it imports.
#[derive(Default)]
struct Module {
    paths: Vec<ItemPath>,
    imports: BTreeMap<String, ItemPath>,
}

/// The modules of a crate, by their paths.
#[derive(Default)]
struct Modules(BTreeMap<ItemPath, Module>);

impl Modules {
    /// Reads the sources of a crate.
    fn of(source: &Path) -> Self {
        let mut texts = BTreeMap::new();
        for file in files(source.to_owned()) {
            let path = file.strip_prefix(source).unwrap().with_extension("");
            let mut path: ItemPath = path.iter().map(|part| part.to_str().unwrap().to_owned()).collect();
            path.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
            texts.insert(path, std::fs::read_to_string(&file).unwrap());
        }
        Self::parse(texts)
    }

    /// Parses the texts of modules.
    fn parse(texts: BTreeMap<ItemPath, String>) -> Self {
        let mut modules = Self::default();
        let known: BTreeSet<ItemPath> = texts.keys().cloned().collect();
        for (path, text) in texts {
            let tokens: TokenStream = text.parse().unwrap_or_else(|error| panic!("{path:?}: {error}"));
            let mut module = Module::default();
            let mut scan = Scan { module: &path, known: &known, found: &mut module };
            scan.tokens(without_tests(tokens), false);
            modules.0.insert(path, module);
        }
        modules
    }

    /// Returns the module that defines a path, through re-exports.
    fn home(&self, path: &[String], depth: usize) -> ItemPath {
        let length = (0..=path.len()).rev().find(|&length| self.0.contains_key(&path[..length])).unwrap();
        let (module, rest) = path.split_at(length);
        let import = rest.first().and_then(|name| self.0[module].imports.get(name));
        match import {
            Some(import) if import != path && depth < 8 => {
                self.home(&[import.as_slice(), &rest[1..]].concat(), depth + 1)
            }
            _ => module.to_vec(),
        }
    }

    /// Returns each module with the other modules that it uses.
    fn uses(&self) -> BTreeSet<(ItemPath, ItemPath)> {
        let pairs = self
            .0
            .iter()
            .flat_map(|(path, module)| module.paths.iter().map(move |used| (path.clone(), self.home(used, 0))));
        pairs.filter(|(path, used)| path != used).collect()
    }

    /// Returns the folders that have modules in a circle, each with the uses inside the circle.
    fn circles(&self) -> BTreeMap<String, BTreeSet<String>> {
        let folders: BTreeSet<&[String]> =
            self.0.keys().flat_map(|path| (0..path.len()).map(|length| &path[..length])).collect();
        let uses = self.uses();
        let mut found = BTreeMap::<_, BTreeSet<_>>::new();
        for folder in folders {
            let child =
                |path: &'_ ItemPath| (path.starts_with(folder) && path.len() > folder.len()).then_some(folder.len());
            let (mut graph, mut nodes) = (DiGraph::<&str, ()>::new(), BTreeMap::new());
            for (path, used) in &uses {
                if let (Some(at), Some(_)) = (child(path), child(used))
                    && path[at] != used[at]
                {
                    let ends =
                        [&path[at], &used[at]].map(|name| *nodes.entry(name).or_insert_with(|| graph.add_node(name)));
                    graph.add_edge(ends[0], ends[1], ());
                }
            }
            for circle in tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1) {
                let is_inside =
                    |path: &ItemPath| child(path).is_some_and(|at| circle.iter().any(|&it| graph[it] == path[at]));
                let inside = uses.iter().filter(|(path, used)| is_inside(path) && is_inside(used));
                let inside = inside.filter(|(path, used)| path[folder.len()] != used[folder.len()]);
                let texts = inside.map(|(path, used)| format!("{} uses {}", path.join("/"), used.join("/")));
                found.entry(folder.join("/")).or_default().extend(texts);
            }
        }
        found
    }

    /// Returns the uses against [`ORDER`].
    fn against_the_order(&self) -> Vec<String> {
        let position =
            |path: &ItemPath| ORDER.iter().position(|known| Some(*known) == path.first().map(String::as_str));
        let uses = self.uses().into_iter().filter(|(path, used)| !path.is_empty() && !used.is_empty());
        let wrong = uses.filter(|(path, used)| position(path).is_none() || position(used) > position(path));
        wrong.map(|(path, used)| format!("{} uses {}", path.join("/"), used.join("/"))).collect()
    }
}

/// Removes items with `#[cfg(test)]`. An item ends with a semicolon, or with braces and the semicolon that may follow.
fn without_tests(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        kept.push(token);
        let [.., TokenTree::Punct(mark), TokenTree::Group(attribute)] = kept.as_slice() else { continue };
        if mark.as_char() != '#' || attribute.stream().to_string().replace(' ', "") != "cfg(test)" {
            continue;
        }
        kept.truncate(kept.len() - 2);
        let is_end = |token: &TokenTree| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ';');
        let is_block = |token: &TokenTree| matches!(token, TokenTree::Group(it) if it.delimiter() == Delimiter::Brace);
        let _last = tokens.by_ref().find(|token| is_end(token) || is_block(token));
        let _semicolon = tokens.next_if(is_end);
    }
    kept.into_iter().collect()
}

/// Search for paths in the tokens of a module. Tokens include the arguments of macros.
struct Scan<'a> {
    module: &'a ItemPath,
    known: &'a BTreeSet<ItemPath>,
    found: &'a mut Module,
}

impl Scan<'_> {
    /// Collects the paths in tokens; `imports` is true in a `use`.
    fn tokens(&mut self, tokens: TokenStream, mut imports: bool) {
        let mut tokens = tokens.into_iter().peekable();
        let mut is_after_colon = false;
        while let Some(token) = tokens.next() {
            match token {
                TokenTree::Group(group) => self.tokens(group.stream(), false),
                TokenTree::Punct(punct) => {
                    is_after_colon = punct.as_char() == ':';
                    imports &= punct.as_char() != ';';
                    continue;
                }
                TokenTree::Ident(ident) if ident == "use" => imports = true,
                TokenTree::Ident(ident) if !is_after_colon => {
                    let starts = ["crate", "super", "self"].iter().any(|word| ident == word) || imports;
                    if starts {
                        self.path(vec![ident.to_string()], &mut tokens, imports);
                    }
                }
                _ => {}
            }
            is_after_colon = false;
        }
    }

    /// Collects the paths that begin with `path`.
    fn path(
        &mut self,
        mut path: ItemPath,
        tokens: &mut std::iter::Peekable<impl Iterator<Item = TokenTree>>,
        imports: bool,
    ) {
        while tokens.next_if(|token| token.to_string() == ":").is_some() {
            match tokens.peek() {
                Some(TokenTree::Ident(ident)) => path.push(ident.to_string()),
                Some(TokenTree::Group(group)) if imports => {
                    let mut inner = group.stream().into_iter().peekable();
                    while let Some(token) = inner.next() {
                        if let TokenTree::Ident(ident) = token {
                            let mut path = path.clone();
                            if ident != "self" {
                                path.push(ident.to_string());
                            }
                            self.path(path, &mut inner, imports);
                        }
                    }
                    tokens.next();
                    return;
                }
                _ => continue,
            }
            tokens.next();
        }
        let is_renamed = imports && tokens.next_if(|token| token.to_string() == "as").is_some();
        let name = if is_renamed { tokens.next().map(|name| name.to_string()) } else { path.last().cloned() };
        let Some(path) = self.absolute(path) else { return };
        if let (true, Some(name)) = (imports, name) {
            self.found.imports.insert(name, path.clone());
        }
        self.found.paths.push(path);
    }

    /// Returns a path from the root of the crate; `None` for a path of another crate.
    fn absolute(&self, path: ItemPath) -> Option<ItemPath> {
        let mut module = self.module.clone();
        let rest = match path[0].as_str() {
            "crate" => return Some(path[1..].to_vec()),
            "self" => &path[1..],
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                module.truncate(module.len().saturating_sub(ups));
                &path[ups..]
            }
            _ if self.known.contains(&[module.as_slice(), &path[..1]].concat()) => &path[..],
            _ => return None,
        };
        Some([module.as_slice(), rest].concat())
    }
}

#[test]
fn folders_use_only_those_before_them() {
    let modules = Modules::of(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
    assert!(modules.0.len() > 100);
    assert_eq!(modules.against_the_order(), [""; 0]);
}

#[test]
fn modules_use_each_other_in_no_circle() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let circles = Modules::of(&crates.join("typelift/src")).circles();
    assert_eq!(circles.keys().collect::<Vec<_>>(), CIRCLES, "{circles:#?}");
    for name in ["typelift-promote", "typelift-run", "typelift-view", "typelift-cli", "typelift-py"] {
        let modules = Modules::of(&crates.join(name).join("src"));
        assert!(modules.0.len() > 3, "{name}");
        let circles = modules.circles();
        assert!(circles.is_empty(), "{name}: {circles:#?}");
    }
}

/// Checks that the tests above see a use after unit tests, in a macro, in a group and through a re-export.
#[test]
fn a_use_against_the_order_is_found_wherever_it_stands() {
    for fault in [
        "#[cfg(test)] mod tests {} use crate::model::graph::Graph;",
        "fn f() { assert!(crate::model::graph::ready()); }",
        "use crate::{base, model::{self, graph}};",
        "use crate::Graph;",
        "fn f() { use super::super::model::graph as g; }",
    ] {
        let texts = [
            ("", "pub use model::graph::Graph; mod base; mod model;"),
            ("base", ""),
            ("base/text", fault),
            ("model", "pub mod graph;"),
            ("model/graph", "use crate::base::text; pub struct Graph;"),
        ];
        let path = |text: &str| text.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect();
        let modules = Modules::parse(texts.into_iter().map(|(name, text)| (path(name), text.to_owned())).collect());
        assert!(!modules.against_the_order().is_empty(), "{fault}");
        assert_eq!(modules.circles().len(), 1, "{fault}");
    }
    let tests = [
        (vec!["base".to_owned()], "#[cfg(test)] mod tests { use crate::model; }"),
        (vec!["model".to_owned()], ""),
        (vec![], ""),
    ];
    let modules = Modules::parse(tests.into_iter().map(|(path, text)| (path, text.to_owned())).collect());
    assert_eq!(modules.against_the_order(), [""; 0]);
}

#[test]
fn only_public_verbs_change_graphs() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let (mut found, mut faults) = (Vec::new(), Vec::new());
    for file in files(source.clone()) {
        let path = file.strip_prefix(&source).unwrap();
        let module = path.components().next().unwrap().as_os_str().to_str().unwrap().trim_end_matches(".rs");
        let text = std::fs::read_to_string(&file).unwrap();
        if path.starts_with("model/graph") {
            let verbs = text.split("pub(crate) fn ").skip(1);
            let changes = verbs.filter(|verb| verb.split(')').next().unwrap().contains("&mut self"));
            found.extend(changes.map(|verb| verb.split(['(', '<']).next().unwrap().to_owned()));
            continue;
        }
        for (verb, modules) in CHANGES {
            if !modules.contains(&module) && text.contains(&format!("graph.{verb}(")) {
                faults.push(format!("{} uses {verb}", path.display()));
            }
        }
        if text.lines().any(|line| !line.trim_start().starts_with("//") && line.contains("petgraph::"))
            && !["lib", "promotion"].contains(&module)
        {
            faults.push(format!("{} uses petgraph", path.display()));
        }
    }
    found.sort_unstable();
    assert_eq!(found, CHANGES.iter().map(|(verb, _)| *verb).collect::<Vec<_>>());
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn references_to_layers_and_paths_are_made_in_one_place_each() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut faults = Vec::new();
    for file in files(source.clone()) {
        let path = file.strip_prefix(&source).unwrap();
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let makes_reference = line.contains("LayerRef { ") || line.ends_with(" LayerRef {") && line.contains('=');
            let makes_path = line.contains("format!") && line.contains("/{}") && line.contains("body.name");
            if makes_reference || makes_path {
                faults.push(format!("{}: {}", path.display(), line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

fn files(folder: PathBuf) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![folder];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path
                .file_name()
                .is_some_and(|name| ["tests", "tests.rs", "double.rs"].iter().any(|tests| name == *tests))
            {
                // Tests may use everything.
            } else if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}
