//! A model as one self-contained page for a browser: the output of `typelift view`.
//!
//! ```
//! let mut model = typelift::Model::from_text("x = Parameter : f32[2]\ny = ReLU(x)\nz = Result(y)\n")?;
//! let found = typelift::infer(&mut model);
//! let page = typelift_view::Page::new(&model, &found).html()?;
//! assert!(page.starts_with("<!doctype html>"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod constants;
mod folded;
mod graphs;
mod outline;
mod ran;
mod steps;
mod union;

use std::collections::{HashMap, HashSet};

use serde::Serialize;
use typelift::explain::blocks::Blocks;
use typelift::explain::map::{PrecisionMap, Row, Ways};
use typelift::explain::{ChangeKind, Consequence, Diff};
use typelift::findings::{About, Diagnostic, LayerRef, Severity, Voice};
use typelift::graph::Place;
use typelift::shape::Formulas;
use typelift::{LayerId, Model, Shapes};
use typelift_run::execution::Ran;

use crate::folded::Strings;
use crate::graphs::brief;

const PAGE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = concat!(
    "\"use strict\";\n",
    include_str!("page/data.js"),
    include_str!("page/layout.js"),
    include_str!("page/groups.js"),
    include_str!("page/graph.js"),
    include_str!("page/path.js"),
    include_str!("page/details.js"),
    include_str!("page/run.js"),
    include_str!("page/panel.js"),
    include_str!("page/search.js"),
    include_str!("page/main.js"),
);

/// Content of a page.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub struct Page<'a> {
    /// The inferred model.
    pub model: &'a Model,
    /// Findings of the model, for example from [`typelift::Checking`].
    pub found: &'a [Diagnostic],
    /// The lengths of the model, if they are known already.
    pub shapes: Option<&'a Shapes>,
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
    /// The limit on the data of a page that shows every layer. A larger model is shown as closed blocks. 4.8 MB by
    /// default.
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

#[derive(Serialize)]
struct Document<'a> {
    title: &'a str,
    file: &'a str,
    /// The name that the model gives itself.
    name: &'a str,
    /// The file that it is compared with.
    before: Option<&'a str>,
    /// True if the graphs contain those of the earlier model.
    both: bool,
    layers: usize,
    /// The names of open lengths, each with the length at which operations are counted, and its bounds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lengths: Vec<(String, i64, i64, Option<i64>)>,
    /// The conditions on lengths, `seq + past == mask_seq`. Those on one length are first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    conditions: Vec<&'a str>,
    /// The layers as a plugin ran them, in one or two runs.
    runs: Vec<ran::Run<'a>>,
    /// The reason why the page shows an outline; `None` if it shows every layer.
    outline: Option<String>,
    graphs: Vec<graphs::Drawn<'a>>,
    /// The layers without a box of a page that shows an outline.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    names: Vec<outline::Name<'a>>,
    /// The precision map: which part of the model is stored and computed in which type.
    map: Vec<MapRow<'a>>,
    map_before: Vec<MapRow<'a>>,
    /// Every tensor.
    steps: Vec<steps::Step>,
    constants: Vec<constants::Values>,
    #[serde(skip_serializing_if = "Option::is_none")]
    made_by: Option<String>,
    /// The metadata of the model, or its changes: the path, the former value of a compared model, and the value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metadata: Vec<(String, Option<String>, Option<String>)>,
    findings: Vec<Finding>,
    /// The number of findings that are not on the page.
    more_findings: usize,
    /// The summary of the changes.
    story: Vec<Told>,
    changes: Vec<Change<'a>>,
    groups: Vec<Group>,
    more_changes: usize,
}

/// The map, the blocks and the data paths of a model.
type Part<'a> = (PrecisionMap, Blocks, Vec<(Place, Ways<'a>)>);

struct Parts<'a> {
    after: Part<'a>,
    before: Option<Part<'a>>,
}

/// The part of a model that a page contains.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// Every layer of both models.
    Both,
    /// Every layer of the model.
    Own,
    /// Closed blocks.
    Outline,
}

#[derive(Serialize)]
struct MapRow<'a> {
    #[serde(flatten)]
    row: &'a Row,
    /// The path of a layer in its first block.
    at: Option<String>,
    /// The paths of its blocks.
    parts: Vec<&'a str>,
}

fn map_row<'a>(model: &Model, row: &'a Row) -> MapRow<'a> {
    let first = row.parts.first().and_then(|block| model.graph_at(&block.place)?.layer(*block.layers.first()?));
    let at = first.map(|layer| match row.path.as_str() {
        "" => layer.name().to_owned(),
        path => format!("{path}/{}", layer.name()),
    });
    let parts = row.parts.iter().map(|block| &*block.path).collect();
    MapRow { row, at, parts }
}

/// Lengths at which operations are counted, the preferred one first.
const USUAL_LENGTHS: [i64; 4] = [224, 64, 16, 4];
/// A page is not attempted if its estimate exceeds the limit this many times.
const HOPELESS: usize = 2;
/// Limit on the findings, and on the changes, of a page.
const MOST: usize = 2000;

/// Limit on the further places of a finding.
const MOST_SITES: usize = 8;

/// Limit on the conditions on lengths, and on the text of each.
const MOST_CONDITIONS: usize = 100;
const LONGEST: usize = 400;

/// Limit on the consequences of a change.
const MOST_FOLLOWING: usize = 50;

#[derive(Serialize)]
struct Finding {
    code: &'static str,
    severity: Severity,
    message: String,
    /// The fixes, each with a command that makes it.
    help: Vec<(String, Option<String>)>,
    /// The path of its layer, as graphs spell it.
    path: Option<String>,
    /// The tensors that explain it, each with the path of its producer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    producers: Vec<(String, String)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    /// The further places that explain it: a remark, and the path of the layer there, or of those at the ends of an edge.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sites: Vec<(String, Vec<String>)>,
    /// The paths of all layers that it concerns, if a terminal counts them in part.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layers: Vec<String>,
}

/// Line of the summary of changes.
#[derive(Serialize)]
struct Told {
    text: String,
    changes: Vec<usize>,
    /// The paths of constants that did not change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    kept: Vec<String>,
}

#[derive(Serialize)]
struct Change<'a> {
    kind: ChangeKind,
    path: &'a str,
    /// The attribute, the input or the output that differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    before: Option<&'a str>,
    after: Option<&'a str>,
    /// The difference of values, and the values that differ most.
    #[serde(skip_serializing_if = "Option::is_none")]
    figures: Option<String>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    worst: &'a [String],
    /// The block that is bypassed.
    #[serde(skip_serializing_if = "Option::is_none")]
    bypassed: Option<&'a str>,
    follows: usize,
    /// The first of its consequences.
    #[serde(skip_serializing_if = "<[Consequence]>::is_empty")]
    consequences: &'a [Consequence],
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
    pub fn new(model: &'a Model, found: &'a [Diagnostic]) -> Self {
        Self {
            model,
            found,
            shapes: None,
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
        if self.shapes.is_none() {
            return Page { shapes: Some(&typelift::shapes(self.model)), ..*self }.html();
        }
        let parts = Parts {
            after: PrecisionMap::with_blocks(self.model, self.found),
            before: self.before.map(|before| PrecisionMap::with_blocks(before.model, &[])),
        };
        let data = match self.data(&parts, Extent::Both)? {
            Some(data) => data,
            None => match self.data(&parts, Extent::Own)? {
                Some(data) => data,
                None => self.written(&parts, Extent::Outline)?,
            },
        };
        Ok(page(self.title, &data))
    }

    /// `None` if they would be too large.
    fn data(&self, parts: &Parts<'a>, extent: Extent) -> serde_json::Result<Option<String>> {
        let before = self.before.filter(|_| extent == Extent::Both);
        if extent == Extent::Own && self.before.is_none() {
            return Ok(None);
        }
        // An estimate that is much too large saves the attempt. Most layers of an earlier model are those of the later one.
        let most = HOPELESS * self.most_bytes;
        let sum = before.map_or(0, |before| outline::size(before.model, most) / 2) + outline::size(self.model, most);
        if sum > most {
            return Ok(None);
        }
        // The document takes more memory than the page, and is dropped before the page is put together.
        let data = self.written(parts, extent)?;
        Ok(Some(data).filter(|data| data.len() <= self.most_bytes))
    }

    fn written(&self, parts: &Parts<'a>, extent: Extent) -> serde_json::Result<String> {
        let mut strings = Strings::default();
        let document = self.document(parts, extent, &mut strings);
        strings.folded(&document)
    }

    fn document<'d>(&'d self, parts: &'d Parts<'a>, extent: Extent, strings: &mut Strings) -> Document<'d> {
        let (model, found, (map, blocks, ways)) = (self.model, self.found, &parts.after);
        let rows = |model: &Model, map: &'d PrecisionMap| map.rows.iter().map(|row| map_row(model, row)).collect();
        let is_whole = extent != Extent::Outline;
        let graphs = if is_whole { graphs::graphs(ways, strings) } else { graphs::Graphs::default() };
        let changes = Changes::of(self.before.as_ref().map(|before| before.diff));
        Document {
            title: self.title,
            file: self.file,
            name: model.name(),
            before: self.before.map(|before| before.file),
            both: extent == Extent::Both && self.before.is_some(),
            layers: model.walk().map(|(_, graph)| graph.len()).sum(),
            lengths: self.lengths(),
            conditions: self.conditions(),
            runs: self.runs.iter().take(2).map(|run| ran::Run::of(model.graph(), run)).collect(),
            outline: (!is_whole).then(|| outline::message(model, blocks)),
            graphs: self.graphs(parts, &graphs, extent, strings),
            names: if is_whole { Vec::new() } else { outline::names(model, self.shapes, blocks) },
            map: rows(model, map),
            map_before: self
                .before
                .zip(parts.before.as_ref())
                .map_or_else(Vec::new, |(it, (map, ..))| rows(it.model, map)),
            steps: if is_whole { steps::steps(model, &graphs, strings) } else { Vec::new() },
            constants: if is_whole { constants::constants(model, &graphs, strings) } else { Vec::new() },
            made_by: model.made_by(),
            metadata: self.metadata(),
            findings: found.iter().take(MOST).map(|diagnostic| finding(model, diagnostic, self.voice)).collect(),
            more_findings: found.len().saturating_sub(MOST),
            story: changes.story,
            changes: changes.list,
            groups: changes.groups,
            more_changes: changes.more,
        }
    }

    /// A batch counts as 1, the other lengths as the usual one that breaks the fewest constraints, within their bounds.
    fn lengths(&self) -> Vec<(String, i64, i64, Option<i64>)> {
        let Some(shapes) = self.shapes else { return Vec::new() };
        let names = Formulas::new(self.model, shapes).names;
        let all =
            USUAL_LENGTHS.map(|length| names.iter().map(|it| if it.contains("batch") { 1 } else { length }).collect());
        let best = all.into_iter().min_by_key(|lengths: &Vec<i64>| shapes.broken(lengths).len()).unwrap_or_default();
        // Lengths of a state have no bounds.
        let bounds = shapes.symbols.iter().map(|symbol| match shapes.ends(symbol) {
            (1, most) if shapes.may_be_empty(self.model.graph(), symbol) => (0, most),
            ends => ends,
        });
        let bounds = bounds.chain(std::iter::repeat((1, i64::MAX)));
        let lengths = names.into_iter().zip(best).zip(bounds).map(|((name, length), (least, most))| {
            (name, length.clamp(least, most.max(least)), least, Some(most).filter(|most| *most < i64::MAX))
        });
        lengths.collect()
    }

    fn conditions(&self) -> Vec<&str> {
        let constraints = self.shapes.iter().flat_map(|shapes| &shapes.constraints);
        let mut seen = HashSet::new();
        let mut short: Vec<_> =
            constraints.filter(|it| it.named.len() <= LONGEST && seen.insert(it.named.as_str())).collect();
        short.sort_by_key(|it| it.symbols.len() > 1);
        short.into_iter().map(|it| it.named.as_str()).take(MOST_CONDITIONS).collect()
    }

    fn metadata(&self) -> Vec<(String, Option<String>, Option<String>)> {
        let Some(Before { diff, .. }) = self.before else {
            return self
                .model
                .rt_info_entries()
                .into_iter()
                .map(|(path, value)| (path, None, Some(brief(&value).into_owned())))
                .collect();
        };
        let changes = diff.info.iter().chain(&diff.versions).cloned();
        let short = changes.map(|it| (it.path, [it.before, it.after].map(|it| it.map(|it| brief(&it).into_owned()))));
        short.map(|(path, [before, after])| (path, before, after)).collect()
    }

    fn graphs<'d>(
        &'d self,
        parts: &'d Parts<'a>,
        graphs: &graphs::Graphs<'d, 'a>,
        extent: Extent,
        strings: &mut Strings,
    ) -> Vec<graphs::Drawn<'d>> {
        if extent == Extent::Outline {
            return vec![outline::drawn(self.model, self.shapes, &parts.after.1, strings)];
        }
        let drawn = graphs::drawn(self.model, self.shapes, graphs, &parts.after.1, strings);
        let Some((before, (_, blocks, ways))) =
            self.before.zip(parts.before.as_ref()).filter(|_| extent == Extent::Both)
        else {
            return drawn;
        };
        let twins = typelift::matched_layers(before.model, self.model).into_iter().collect();
        let graphs = graphs::graphs(ways, strings);
        union::union(drawn, graphs::drawn(before.model, None, &graphs, blocks, strings), &twins)
    }
}

/// The changes of a page, and their summary.
#[derive(Default)]
struct Changes<'a> {
    story: Vec<Told>,
    list: Vec<Change<'a>>,
    groups: Vec<Group>,
    /// The number of changes that the page lacks.
    more: usize,
}

impl<'a> Changes<'a> {
    fn of(diff: Option<&'a Diff>) -> Self {
        let Some(diff) = diff else { return Self::default() };
        let mut alike = typelift::alike(diff.changes.iter().take(MOST));
        for it in &mut alike {
            it.changes.sort_by(|one, other| other.loss().total_cmp(&one.loss()));
        }
        let shown: Vec<_> =
            alike.iter().enumerate().flat_map(|(at, it)| it.changes.iter().map(move |&it| (it, at))).collect();
        let numbers: HashMap<_, usize> =
            shown.iter().enumerate().map(|(number, &(change, _))| (std::ptr::from_ref(change), number)).collect();
        let story = diff.story_lines().into_iter().map(|line| {
            let changes = line.changes.iter().filter_map(|&change| numbers.get(&std::ptr::from_ref(change)).copied());
            Told { changes: changes.collect(), text: line.text, kept: line.kept.to_vec() }
        });
        Self {
            story: story.collect(),
            list: shown.iter().map(|&(it, group)| change(it, group)).collect(),
            groups: alike.iter().map(|it| Group { what: it.what.clone(), places: it.places() }).collect(),
            more: diff.changes.len().saturating_sub(MOST),
        }
    }
}

fn change(change: &typelift::explain::Change, group: usize) -> Change<'_> {
    let values = change.values.as_ref();
    Change {
        kind: change.kind,
        path: &change.path,
        subject: change.subject.as_deref(),
        before: change.before.as_deref(),
        after: change.after.as_deref(),
        figures: values.map(ToString::to_string),
        worst: values.map_or(&[], |values| &values.worst),
        bypassed: change.bypassed.as_deref(),
        follows: change.follows.len(),
        consequences: &change.follows[..change.follows.len().min(MOST_FOLLOWING)],
        group,
    }
}

/// The paths of layers, in the order of the model.
fn paths(model: &Model, layers: &[(Place, LayerId)]) -> Vec<String> {
    let layers: foldhash::HashSet<_> = layers.iter().collect();
    let mut paths = Vec::new();
    for (place, graph) in model.walk() {
        let listed = graph.layers().filter(|layer| layers.contains(&(place.clone(), layer.id())));
        paths.extend(listed.map(|layer| graphs::path(&place, layer).into_owned()).take(MOST - paths.len()));
    }
    paths
}

/// The further places of a finding in its file, with their layers.
fn sites(model: &Model, diagnostic: &Diagnostic) -> Vec<(String, Vec<String>)> {
    let place = diagnostic.layer.as_ref().map_or_else(Place::default, |layer| layer.place.clone());
    let Some(graph) = model.graph_at(&place) else { return Vec::new() };
    let sites = diagnostic.labels.iter().skip(1).take(MOST_SITES).filter_map(|label| {
        let remark = label.message.to_string();
        let at = |layer: &typelift::Layer| {
            layer.span().is_some_and(|span| span.start <= label.span.start && label.span.end <= span.end)
        };
        let path = |layer: &typelift::Layer| graphs::path(&place, layer).into_owned();
        let ends = graph.ends_of_edge(label.span).map(|ends| ends.map(path).to_vec());
        let layers = ends.unwrap_or_else(|| graph.layers().find(|layer| at(layer)).map(path).into_iter().collect());
        (!remark.is_empty() && !layers.is_empty()).then(|| (brief(&remark).into_owned(), layers))
    });
    sites.collect()
}

fn finding(model: &Model, diagnostic: &Diagnostic, voice: Voice<'_>) -> Finding {
    let layers = match &*diagnostic.about {
        About::Layers(layers) if diagnostic.labels.len() > 1 => paths(model, layers),
        _ => Vec::new(),
    };
    let path = diagnostic.layer.as_ref().map(LayerRef::full_name);
    Finding {
        code: diagnostic.code.name(),
        severity: diagnostic.severity,
        message: brief(&diagnostic.message.to_string()).into_owned(),
        help: voice.remedies(diagnostic).into_iter().map(|fix| (brief(&fix.words).into_owned(), fix.command)).collect(),
        path,
        producers: diagnostic
            .related
            .iter()
            .map(|it| (brief(&it.to_string()).into_owned(), it.layer.full_name()))
            .collect(),
        notes: diagnostic.notes.iter().map(|note| brief(&note.to_string()).into_owned()).collect(),
        sites: if layers.is_empty() { sites(model, diagnostic) } else { Vec::new() },
        layers,
    }
}

/// Nothing in the data can end the script element, because [`Strings::folded`] escapes them.
fn page(title: &str, data: &str) -> String {
    let title = title.replace('&', "&amp;").replace('<', "&lt;");
    let parts = [("/*STYLE*/", STYLE), ("/*SCRIPT*/", SCRIPT), ("<!--TITLE-->", &title), ("/*DATA*/", data)];
    let mut places: Vec<_> = parts.iter().filter_map(|&(mark, text)| Some((PAGE.find(mark)?, mark, text))).collect();
    places.sort_unstable_by_key(|&(at, ..)| at);
    let mut page = String::with_capacity(PAGE.len() + STYLE.len() + SCRIPT.len() + title.len() + data.len());
    let mut from = 0;
    for (at, mark, text) in places {
        page.extend([&PAGE[from..at], text]);
        from = at + mark.len();
    }
    page + &PAGE[from..]
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_title_is_text() {
        let titled = super::page("/*DATA*/<&", "[1]");
        assert!(titled.contains("<title>/*DATA*/&lt;&amp;") && titled.contains("application/json\">[1]</script>"));
    }
}
