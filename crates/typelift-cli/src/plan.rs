//! Changes that a conversion makes to a graph: added and removed Converts.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::{self, Display, Formatter, Write as _};

use anstyle::{AnsiColor, Style};
use serde::Serialize;
use typelift::convert::Converted;
use typelift::convert::retarget::Retargeted;
use typelift::edit::inputs_outputs::Reshaped;
use typelift::explain::InfoChange;
use typelift::findings::{Diagnostic, FileName, LayerRef};
use typelift::graph::Place;
use typelift::host::without_numbers;
use typelift::passes::{Action, Change};
use typelift::promote::ElementType;
use typelift::{Layer, LayerId, Model, precision};
use unicode_width::UnicodeWidthStr;

use crate::fit;
use crate::gate::Clean;

#[derive(Serialize)]
pub(crate) struct Plan {
    #[serde(serialize_with = "as_name")]
    file: String,
    converts: Vec<Entry>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    shapes: Vec<Reshaped>,
    /// The number of Transposes for new layouts of inputs and outputs.
    #[serde(skip)]
    transposes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    target: Option<Retargeted>,
    /// The constants that are stored differently.
    #[serde(skip_serializing_if = "Option::is_none")]
    precision: Option<Stored>,
    #[serde(skip_serializing_if = "Option::is_none")]
    quantized: Option<precision::quantize::QuantizationPlan>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    risks: Vec<precision::Risk>,
    /// The kept layers that got a precision mark.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    marked: Vec<LayerRef>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    metadata: Vec<InfoChange>,
    /// The numbers of ConvertPromoteTypes that were replaced, and that were kept.
    #[serde(skip)]
    promotions: [usize; 2],
}

#[derive(Serialize)]
struct Stored {
    totals: precision::PlanTotals,
    #[serde(flatten)]
    plan: precision::Plan,
}

/// A change, with the line of the layer in the file, or of its source if it is new.
#[derive(Serialize)]
struct Entry {
    #[serde(flatten)]
    change: Change,
    line: Option<usize>,
}

fn key(change: &Change) -> (&Place, LayerId) {
    (&change.layer.place, change.layer.id)
}

/// Iterates over the changes, except Converts that are inserted and later removed.
fn lasting(changes: Vec<Change>) -> impl Iterator<Item = Change> {
    let [inserted, removed] = [Action::Inserted, Action::Removed]
        .map(|action| changes.iter().filter(|it| it.action == action).map(key).collect::<HashSet<_>>());
    let lasts = changes.iter().map(|change| !(inserted.contains(&key(change)) && removed.contains(&key(change))));
    let lasts: Vec<bool> = lasts.collect();
    changes.into_iter().zip(lasts).filter_map(|(change, lasts)| lasts.then_some(change))
}

fn as_name<S: serde::Serializer>(file: &str, serializer: S) -> Result<S::Ok, S::Error> {
    FileName(file).serialize(serializer)
}

impl Plan {
    /// The plan of a conversion. A Convert that one pass inserts and a later one removes is not a change.
    pub(crate) fn new(file: &str, converted: Converted) -> Self {
        let precision = converted.stored.map(|plan| Stored { totals: plan.totals(), plan });
        Self {
            file: file.to_owned(),
            promotions: [converted.promotions_replaced, converted.promotions_left],
            converts: lasting(converted.changes).map(|change| Entry { line: None, change }).collect(),
            shapes: converted.reshaped,
            transposes: converted.transposes,
            target: converted.retargeted,
            precision,
            quantized: converted.quantized,
            risks: converted.risks,
            marked: converted.marked,
            metadata: converted.metadata,
        }
    }

    /// Iterates over the changed options of the runtime, which change how devices compute.
    pub(crate) fn options(&self) -> impl Iterator<Item = String> {
        self.metadata.iter().filter(|it| it.path.starts_with("runtime_options/")).map(ToString::to_string)
    }

    /// Adds the lines of the file, which only a report has.
    pub(crate) fn with_lines(mut self, model: &Model) -> Self {
        let lines = typelift::findings::Lines::new(model.source().clone());
        for Entry { change, line } in &mut self.converts {
            *line = change.span().map(|span| lines.line_at(span.start));
        }
        self
    }

    /// Iterates over warnings about constants whose values are lost.
    pub(crate) fn warnings(&self, model: &Model) -> impl Iterator<Item = Diagnostic> {
        self.converts.iter().filter_map(|entry| entry.change.warning(model))
    }

    /// One line about constants that are only rounded to the precision of their new types.
    pub(crate) fn rounding(&self) -> Option<String> {
        let audits = self.converts.iter().filter_map(|entry| entry.change.audit());
        let rounded: Vec<_> = audits.filter(|audit| audit.changed() > 0 && audit.lost() == 0).collect();
        let worst = rounded.iter().map(|audit| audit.worst_relative_error).fold(0.0, f64::max);
        let constants = match rounded.len() {
            0 => return None,
            1 => "1 constant is".to_owned(),
            count => format!("{count} constants are"),
        };
        Some(format!("{constants} rounded to the precision of the new type, by {:.1e} of the value at most", worst))
    }

    /// A line for each change of type of the model's outputs, with their names.
    pub(crate) fn outputs(&self, model: &Model) -> Vec<String> {
        let outputs: HashSet<_> = model.outputs().map(Layer::id).collect();
        let mut groups = BTreeMap::<_, Vec<String>>::new();
        for Change { layer, from, to, .. } in self.converts.iter().map(|entry| &entry.change).filter(|change| {
            change.action == Action::Retyped && change.layer.place.is_model() && outputs.contains(&change.layer.id)
        }) {
            let layer = model.graph().layer(layer.id);
            let name = layer.map_or_else(String::new, |layer| format!("`{}`", Clean(&model.end_name(layer))));
            groups.entry((*from, *to)).or_default().push(name);
        }
        let lines = groups.into_iter().map(|((from, to), names)| match &names[..] {
            [name] => format!("output {name} is {to}, was {from}"),
            [first, second] => format!("outputs {first} and {second} are {to}, were {from}"),
            [first, second, others @ ..] => {
                format!("outputs {first}, {second} and {} more are {to}, were {from}", others.len())
            }
            [] => String::new(),
        });
        lines.collect()
    }

    fn count(&self, action: Action) -> usize {
        self.converts.iter().filter(|entry| entry.change.action == action).count()
    }

    pub(crate) fn totals(&self) -> Totals {
        let [replaced, left] = self.promotions;
        let target = self.target.as_ref().map(|target| {
            let Retargeted { applied, versions, marks, names, masks, format, .. } = target;
            [applied.len() + masks.len(), versions.len(), marks.len(), names.len(), usize::from(format.is_some())]
        });
        let [rewritten, versions, marks, names, files] = target.unwrap_or_default();
        // Converted constants are among the changes.
        let stored = self.precision.iter().flat_map(|stored| &stored.plan.constants);
        let stored = stored.filter(|it| !matches!(it.action, precision::Action::Convert | precision::Action::Keep(_)));
        let quantized = self.quantized.as_ref().map_or(0, |plan| plan.changed().count());
        let marked = self.marked.len() + self.precision.as_ref().map_or(0, |stored| stored.plan.marked.len());
        Totals([
            replaced,
            left,
            self.count(Action::Inserted),
            self.transposes,
            self.count(Action::Removed),
            self.count(Action::Used),
            self.count(Action::Corrected),
            self.count(Action::Retyped),
            self.count(Action::Converted),
            self.shapes.len(),
            rewritten,
            versions,
            marks,
            names,
            files,
            stored.count() + quantized,
            marked,
        ])
    }
}

/// The kinds of changes in singular and plural.
const KINDS: [(&str, &str); 17] = [
    ("ConvertPromoteTypes replaced", "ConvertPromoteTypes replaced"),
    (LEFT, LEFT),
    ("Convert inserted", "Converts inserted"),
    ("Transpose inserted", "Transposes inserted"),
    ("Convert removed", "Converts removed"),
    ("layer used once more", "layers used once more"),
    ("attribute corrected", "attributes corrected"),
    ("input or output retyped", "inputs and outputs retyped"),
    ("constant converted", "constants converted"),
    ("input or output reshaped", "inputs and outputs reshaped"),
    ("layer rewritten", "layers rewritten"),
    ("operation set changed", "operation sets changed"),
    ("mark spelled for the release", "marks spelled for the release"),
    ("layer renamed", "layers renamed"),
    ("file made version 10", "files made version 10"),
    ("constant stored in another type", "constants stored in another type"),
    ("layer marked", "layers marked"),
];

/// Noun of the count of promotions that were kept.
const LEFT: &str = "ConvertPromoteTypes left, whose type is not known before run time";

#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Totals([usize; KINDS.len()]);

impl Totals {
    pub(crate) fn change_nothing(&self) -> bool {
        KINDS.iter().zip(self.0).all(|((one, _), count)| count == 0 || *one == LEFT)
    }
}

impl std::iter::Sum for Totals {
    fn sum<I: Iterator<Item = Self>>(totals: I) -> Self {
        totals.fold(Self::default(), |a, b| Self(std::array::from_fn(|kind| a.0[kind] + b.0[kind])))
    }
}

impl Display for Totals {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let counted = KINDS.into_iter().zip(self.0).filter(|(_, count)| *count > 0);
        let done = counted.map(|((one, more), count)| format!("{count} {}", if count == 1 { one } else { more }));
        let done = done.collect::<Vec<_>>().join(", ");
        f.write_str(if done.is_empty() { "nothing to convert" } else { &done })
    }
}

/// Row of the plan: changes that differ only in the numbers of their names.
struct Row {
    sign: char,
    /// The id and name of the layer, or the names of several as a pattern.
    name: String,
    types: String,
    loss: String,
    reason: String,
    count: usize,
}

impl Row {
    fn of(entry: &Change) -> Self {
        let sign = match entry.action {
            Action::Inserted => '+',
            Action::Removed => '-',
            Action::Used => '=',
            _ => '~',
        };
        let loss = match (entry.audit(), entry.can_lose()) {
            _ if ![Action::Inserted, Action::Converted].contains(&entry.action) => String::new(),
            (Some(audit), _) if audit.changed() == 0 => "exact for these values".to_owned(),
            (Some(audit), _) => audit.to_string(),
            (None, Some(fidelity)) => fidelity.to_string(),
            (None, None) => String::new(),
        };
        Self {
            sign,
            name: format!("{} {}", entry.layer.id, Clean(&entry.layer.name)),
            types: format!("{} -> {}", entry.from, entry.to),
            loss,
            reason: Clean(&entry.reason).to_string(),
            count: 1,
        }
    }

    fn pattern(&self) -> [String; 4] {
        let name = self.name.split_once(' ').map_or("", |(_, name)| name);
        let key = [&format!("{}{}", self.sign, without_numbers(name)), &self.types, &self.loss].map(String::clone);
        let [name, types, loss] = key;
        [name, types, loss, reason_pattern(&self.reason)]
    }

    fn absorb(&mut self, pattern: &[String; 4]) {
        self.count += 1;
        self.name = format!("{} x {}", self.count, &pattern[0][1..]);
        self.reason.clone_from(&pattern[3]);
    }

    /// Formats the row in columns of these widths, or without columns if the terminal is too narrow.
    fn line(&self, widths: [usize; 3], above: &str, with_colors: bool) -> String {
        let line = self.in_columns(widths, above, with_colors);
        if fit::columns().is_none_or(|columns| fit::shown_width(&line) <= columns) {
            return line;
        }
        let wrapped = fit::hanging(&self.in_columns([0; 3], above, with_colors), 4);
        wrapped.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    fn in_columns(&self, widths: [usize; 3], above: &str, with_colors: bool) -> String {
        let style = match self.sign {
            _ if !with_colors => Style::new(),
            '+' => AnsiColor::Green.on_default(),
            '-' => AnsiColor::Red.on_default(),
            _ => AnsiColor::Yellow.on_default(),
        };
        let reason = if !self.reason.is_empty() && self.reason == above { "as above" } else { &self.reason };
        let mut line = format!("  {style}{}{style:#} ", self.sign);
        for (text, width) in self.cells().into_iter().zip(widths) {
            let gap = if width == 0 && text.is_empty() { 0 } else { 2 };
            line += &format!("{text}{:1$}", "", width.saturating_sub(text.width()) + gap);
        }
        (line + reason).trim_end().to_owned()
    }

    fn cells(&self) -> [&str; 3] {
        [&self.name, &self.types, &self.loss]
    }
}

/// Replaces the numbers in a reason by `*`, but for those of element types.
fn reason_pattern(reason: &str) -> String {
    let mut pattern = String::new();
    for word in reason.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let name = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_type = ElementType::from_name(name).is_some();
        pattern += &if is_type { word.to_owned() } else { without_numbers(word) };
    }
    pattern
}

impl Plan {
    /// Formats one line for each change, grouped by body. Changes of sibling blocks share a line, and a repeated reason
    /// is printed once.
    pub(crate) fn text(&self, with_colors: bool) -> String {
        let mut groups = BTreeMap::<&str, (Vec<Row>, HashMap<[String; 4], usize>)>::new();
        for entry in self.converts.iter().map(|entry| &entry.change) {
            let (rows, known) = groups.entry(entry.layer.path()).or_default();
            let row = Row::of(entry);
            let pattern = row.pattern();
            match known.get(&pattern) {
                Some(&at) => rows[at].absorb(&pattern),
                None => {
                    known.insert(pattern, rows.len());
                    rows.push(row);
                }
            }
        }
        for Reshaped { layer, from, to, .. } in &self.shapes {
            let (name, types) = (format!("{} {}", layer.id, Clean(&layer.name)), format!("{from} -> {to}"));
            let row = Row { sign: '~', name, types, loss: String::new(), reason: String::new(), count: 1 };
            groups.entry("").or_default().0.push(row);
        }
        let mut text = String::new();
        for (path, (rows, _)) in groups {
            if !path.is_empty() {
                let _ = writeln!(text, "in {}:", Clean(path));
            }
            let widths = [0, 1, 2].map(|column| {
                let widths = rows.iter().map(|row| row.cells()[column].width().min(WIDEST));
                widths.max().unwrap_or(0)
            });
            let mut above = "";
            for row in &rows {
                let _ = writeln!(text, "{}", row.line(widths, above, with_colors));
                above = &row.reason;
            }
        }
        let sites = self.target.iter().flat_map(|target| &target.applied);
        sites.for_each(|site| text += &format!("  * {}\n", Clean(&site.to_string())));
        text
    }
}

/// The largest width of a column; longer text shifts the rest of its line.
const WIDEST: usize = 48;

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(false))
    }
}
