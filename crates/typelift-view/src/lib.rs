//! A model as one self-contained page for a browser: the output of `typelift view`.
//!
//! ```
//! let mut model = typelift::Model::from_text("x = Parameter : f32[2]\ny = ReLU(x)\nz = Result(y)\n")?;
//! let found = typelift::infer(&mut model);
//! let page = typelift_view::Page::new(&model, &found).html()?;
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod folded;
mod layout;
mod outline;
mod ran;
mod scene;

use serde::Serialize;
use typelift::diff::{ChangeKind, Diff};
use typelift::execution::Ran;
use typelift::findings::{LayerRef, Voice};
use typelift::map::{PrecisionMap, Row};
use typelift::{Diagnostic, Model, Severity};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Content of a page.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Page<'a> {
    /// The inferred model.
    pub model: &'a Model,
    /// Findings of the model, for example from [`typelift::Checking`].
    pub found: &'a [Diagnostic],
    /// The title of the page; the name of the model by default.
    pub title: &'a str,
    /// The file of the model, as commands name it.
    pub file: &'a str,
    /// The model that it is compared with.
    pub before: Option<Before<'a>>,
    /// Graphs that a plugin ran for the model. The page colours layers by the types of the first one, and shows the second one next
    /// to it.
    pub runs: &'a [Ran],
    /// The audience of the fixes of findings.
    pub voice: Voice<'a>,
    /// The approximate limit on the data of a page that shows every layer. A larger model is shown as runs of layers. 5
    /// MB by default.
    pub most_bytes: usize,
}

/// An inferred model that another one is compared with.
#[derive(Clone, Copy)]
pub struct Before<'a> {
    /// The file.
    pub file: &'a str,
    /// The model.
    pub model: &'a Model,
    /// The differences of the other model.
    pub diff: &'a Diff,
}

/// The data of a page.
#[derive(Serialize)]
struct Document<'a> {
    title: String,
    file: String,
    /// The file that it is compared with.
    before: Option<String>,
    /// The data of the earlier model's own page, unless both would be too large.
    beside: Option<Box<Document<'a>>>,
    layers: usize,
    /// The layers as a plugin ran them.
    ran: Option<ran::Run<'a>>,
    /// The reason why the page shows an outline; `None` if it shows every layer.
    outline: Option<String>,
    scenes: Vec<scene::Scene<'a>>,
    /// The precision map: which part of the model is stored and computed in which type.
    map: Vec<MapRow>,
    /// The precision map of the earlier model.
    map_before: Vec<Row>,
    /// Every tensor.
    steps: Vec<scene::Step<'a>>,
    findings: Vec<Finding>,
    /// The number of findings that are not on the page.
    more_findings: usize,
    changes: Vec<Change>,
    groups: Vec<Group>,
    more_changes: usize,
}

/// A row of the precision map.
#[derive(Serialize)]
struct MapRow {
    #[serde(flatten)]
    row: Row,
    /// The path of a layer in its first block.
    at: Option<String>,
}

fn map_row(model: &Model, row: Row) -> MapRow {
    let graph = model.graph_at(&row.place);
    let first = row.parts.first().and_then(|part| graph?.layer(*part.layers.first()?));
    let at = first.map(|layer| match row.path.as_str() {
        "" => layer.name().to_owned(),
        path => format!("{path}/{}", layer.name()),
    });
    MapRow { row, at }
}

/// Limit on the findings, and on the changes, of a page.
const MOST: usize = 2000;

/// A finding of `check`.
#[derive(Serialize)]
struct Finding {
    code: &'static str,
    severity: Severity,
    message: String,
    help: Vec<String>,
    /// The path of its layer, as scenes spell it.
    path: Option<String>,
}

#[derive(Serialize)]
struct Change {
    kind: ChangeKind,
    path: String,
    /// The path of the layer to select. For a removed layer it is the layer that used it.
    at: String,
    text: String,
    follows: usize,
    /// The number of its group; equal findings share one.
    group: usize,
}

/// Group of equal changes.
#[derive(Serialize)]
struct Group {
    what: String,
    /// The places as text: `2 in each of layers.0–31`.
    places: String,
}

impl<'a> Page<'a> {
    /// Returns the page of an inferred model with its findings.
    #[must_use]
    pub fn new(model: &'a Model, found: &'a [Diagnostic]) -> Self {
        Self {
            model,
            found,
            title: model.name(),
            file: "model.xml",
            before: None,
            runs: &[],
            voice: Voice::Plain,
            most_bytes: outline::MOST_BYTES,
        }
    }

    /// Returns the text of the page.
    ///
    /// # Errors
    /// A page that cannot be written as JSON.
    pub fn html(&self) -> Result<String, serde_json::Error> {
        // The document takes more memory than the page, and is dropped before the page is put together.
        let data = folded::folded(&self.document())?;
        Ok(page(self.title, &data))
    }

    fn document(&self) -> Document<'a> {
        let (model, found) = (self.model, self.found);
        let changes = self.before.map_or(&[][..], |before| &before.diff.changes);
        let outline = outline::instead_of_drawing(model, self.most_bytes);
        let alike = typelift::diff::alike(changes.iter().take(MOST));
        let shown = alike.iter().enumerate();
        let shown: Vec<Change> =
            shown.flat_map(|(group, alike)| alike.changes.iter().map(move |it| change(it, group))).collect();
        let groups = alike.iter().map(|alike| Group { what: alike.what.clone(), places: alike.places() }).collect();
        let removed: Vec<_> = shown.iter().filter(|change| change.kind == ChangeKind::Removed).map(removed).collect();
        let name = if model.name().is_empty() { "model" } else { model.name() }.to_owned();
        let map = PrecisionMap::new(model, found);
        let (scenes, steps) = match outline {
            Some(_) => (vec![outline::scene(model.graph(), name)], Vec::new()),
            None => {
                let graphs = scene::graphs(model);
                (scene::scenes(model, &graphs, &map, name, &removed), scene::steps(model, &graphs))
            }
        };
        let before_map = self.before.map(|before| PrecisionMap::new(before.model, &[]).rows);
        Document {
            title: self.title.to_owned(),
            file: self.file.to_owned(),
            layers: model.graph().len(),
            ran: self.runs.first().map(|run| ran::Run::of(model.graph(), run)),
            scenes,
            map: map.rows.into_iter().map(|row| map_row(model, row)).collect(),
            map_before: before_map.unwrap_or_default(),
            steps,
            outline,
            findings: found.iter().take(MOST).map(|diagnostic| finding(diagnostic, self.voice)).collect(),
            more_findings: found.len().saturating_sub(MOST),
            changes: shown,
            groups,
            more_changes: changes.len().saturating_sub(MOST),
            before: self.before.map(|before| before.file.to_owned()),
            beside: self.before.and_then(|before| self.beside(&before)).or_else(|| self.second_run()).map(Box::new),
        }
    }

    /// Returns the data of the same model with the second run.
    fn second_run(&self) -> Option<Document<'a>> {
        let runs = self.runs.get(1..2).filter(|_| 2 * outline::size(self.model, self.most_bytes) <= self.most_bytes)?;
        Some(Page { runs, title: "second run", ..*self }.document())
    }

    /// Returns the data of the earlier model, with removed or changed layers marked.
    fn beside(&self, before: &Before<'a>) -> Option<Document<'a>> {
        let both = [self.model, before.model].map(|model| outline::size(model, self.most_bytes));
        if both.iter().sum::<usize>() > self.most_bytes {
            return None;
        }
        let page = Page { title: before.file, file: before.file, ..Page::new(before.model, &[]) };
        let kept = before.diff.changes.iter().filter(|it| it.kind != ChangeKind::Added).take(MOST);
        let changes = kept.map(|it| Change { at: it.path.clone(), ..change(it, 0) }).collect();
        Some(Document { changes, ..page.document() })
    }
}

fn change(change: &typelift::diff::Change, group: usize) -> Change {
    let side = |text: &Option<String>| text.clone().unwrap_or_else(|| "none".to_owned());
    let subject = change.subject.as_ref().map_or(String::new(), |subject| format!("{subject} "));
    let figures = change.values.map_or(String::new(), |values| format!(" ({values})"));
    let text = match change.kind {
        ChangeKind::Added => side(&change.after),
        ChangeKind::Removed => side(&change.before),
        _ => format!("{subject}{} → {}{figures}", side(&change.before), side(&change.after)),
    };
    let user = change.follows.iter().find(|follow| follow.kind == ChangeKind::Input);
    let at = match change.kind {
        ChangeKind::Removed => user.map_or_else(|| change.path.clone(), |user| user.path.clone()),
        _ => change.path.clone(),
    };
    Change { kind: change.kind, path: change.path.clone(), at, text, follows: change.follows.len(), group }
}

/// Parses a removed layer from its text: `Add(x, y.1) : f32[2]`.
fn removed(change: &Change) -> scene::Removed {
    let (operation, rest) = change.text.split_once('(').unwrap_or((&change.text, ""));
    let operands = rest.split_once(')').map_or("", |(operands, _)| operands).split(", ");
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let without_port = |name: &str| match name.rsplit_once('.') {
        Some((layer, port)) if is_port(port) => vec![name.to_owned(), layer.to_owned()],
        _ => vec![name.to_owned()],
    };
    scene::Removed {
        path: change.path.clone(),
        operation: operation.split(' ').next().unwrap_or_default().to_owned(),
        operands: operands.flat_map(without_port).collect(),
        user: change.at.clone(),
    }
}

fn finding(diagnostic: &Diagnostic, voice: Voice<'_>) -> Finding {
    let path = diagnostic.layer.as_ref().map(LayerRef::full_name);
    Finding {
        code: diagnostic.code.name(),
        severity: diagnostic.severity,
        message: scene::brief(&diagnostic.message).into_owned(),
        help: voice.help(diagnostic).iter().map(|help| scene::brief(help).into_owned()).collect(),
        path,
    }
}

/// Appends JSON. Nothing in it can end a script element, and characters that change the direction of a line are shown as
/// escapes.
fn push_escaped(page: &mut String, json: &str) {
    let is_special = |c: char| matches!(c, '<' | '\u{7f}'..='\u{9f}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    for piece in json.split_inclusive(is_special) {
        match piece.chars().next_back().filter(|&c| is_special(c)) {
            Some('<') => page.extend([&piece[..piece.len() - 1], "\\u003c"]),
            Some(c) => page.extend([&piece[..piece.len() - c.len_utf8()], &format!("\\\\u{{{:x}}}", u32::from(c))]),
            None => *page += piece,
        }
    }
}

/// Returns the page with its data. The data are escaped, so that nothing in a model can end the script element.
fn page(title: &str, data: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let parts = [("/*STYLE*/", STYLE), ("/*SCRIPT*/", SCRIPT), ("<!--TITLE-->", &title), ("/*DATA*/", "")];
    let mut places: Vec<_> = parts.iter().filter_map(|&(mark, text)| Some((PAGE.find(mark)?, mark, text))).collect();
    places.sort_unstable_by_key(|&(at, ..)| at);
    let escapes = 5 * data.matches('<').count();
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + title.len() + data.len() + escapes);
    let mut from = 0;
    for (at, mark, text) in places {
        page += &PAGE[from..at];
        page += text;
        if mark == "/*DATA*/" {
            push_escaped(&mut page, data);
        }
        from = at + mark.len();
    }
    page + &PAGE[from..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_can_neither_end_the_script_nor_turn_lines() {
        let mut page = String::new();
        push_escaped(&mut page, "{\"a<b\": \"\u{202e}x\u{9b}\"}<");
        assert_eq!(page, "{\"a\\u003cb\": \"\\\\u{202e}x\\\\u{9b}\"}\\u003c");
        let titled = super::page("/*DATA*/<&", "[1]");
        assert!(titled.contains("<title>/*DATA*/&lt;&amp;") && titled.contains("application/json\">[1]</script>"));
    }
}
