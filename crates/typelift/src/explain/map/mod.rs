//! Precision map: the blocks of a model with the element types in which each stores and computes, and its possible
//! losses.

mod paths;
mod value;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use typelift_promote::{ElementType, Fidelity};

use crate::base::hash::HashMap;
use crate::edit::precision_marks::Marks;
use crate::explain::blocks::{Form, compare};
use crate::explain::stats::{Census, TypeCount, Weight, by_size, counted, map_of, name_of};
use crate::findings::{Diagnostic, Severity};
use crate::infer::blocks;
use crate::model::graph::{Graph, LayerId, LayerMap, Model, Place};
use crate::ops::{self, LayerKind};
use crate::precision::schemes;

pub use crate::infer::blocks::{Part, Role, roles};
pub use paths::WeightPath;
pub use value::{ValuePath, ValueStep, Ways};

/// Precision map of a model: the element types in each of its blocks.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PrecisionMap {
    /// A row for each block or run of equal blocks, and for the layers between blocks, in topological order.
    pub rows: Vec<Row>,
}

/// Row of the map: a block, a run of equal blocks, or the layers between two blocks. Counts are totals.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct Row {
    /// The name: `model.layers.0–31`.
    pub name: String,
    /// The surrounding bodies, outermost first: `loop/body`; empty in the model's own graph.
    pub path: String,
    /// The number of blocks in this row.
    pub blocks: usize,
    /// The number of their layers.
    pub layers: usize,
    /// The constants by stored element type, sorted by size. Shared bytes are counted once in the whole map; a last
    /// row contains those that several rows use.
    pub weights: Vec<Weight>,
    /// The data paths of weights, sorted by size.
    pub paths: Vec<WeightPath>,
    /// The number of computed tensors by element type, the most frequent first. Tensors that depend only on constants
    /// and shapes are not counted.
    #[serde(serialize_with = "map_of")]
    pub computed: Vec<TypeCount>,
    /// The Converts that may lose information. Those of constants whose values are all kept are not counted.
    pub lossy: Vec<Lossy>,
    /// The number of layers with a [precision mark](crate::edit::precision_marks).
    pub marks: usize,
    /// The number of errors in them.
    pub errors: usize,
    /// The number of warnings in them.
    pub warnings: usize,
    /// The differences from its siblings, in words: `computes in f32, its 31 siblings in f16`. Empty if there are none.
    pub differs: Vec<String>,
    /// The blocks in this row.
    #[serde(skip)]
    pub parts: Vec<Part>,
    /// The graph of the blocks.
    #[serde(skip)]
    pub place: Place,
    /// The properties in which siblings can differ.
    #[serde(skip)]
    form: Form,
}

/// Lossy Converts with the same source and destination type.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lossy {
    /// The source type.
    #[serde(serialize_with = "name_of")]
    pub from: ElementType,
    /// The destination type.
    #[serde(serialize_with = "name_of")]
    pub to: ElementType,
    /// The number of Converts.
    pub count: usize,
    /// The possible loss.
    #[serde(serialize_with = "losses")]
    pub loses: Fidelity,
}

pub(crate) fn losses<S: Serializer>(fidelity: &Fidelity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(fidelity.losses().map(typelift_promote::Loss::name))
}

impl PrecisionMap {
    /// Creates the map of an inferred model with its findings. Of the weights, only scales and zero points are read.
    ///
    /// A block is a set of layers whose names start with the same text up to a number, `model.layers.0`. Without such
    /// names it is a sequence of operations that repeats. Types are ignored, so that blocks can be compared by them.
    ///
    /// # Examples
    /// ```
    /// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
    /// use typelift::explain::map::PrecisionMap;
    /// let found = typelift::infer(&mut model);
    /// let map = PrecisionMap::new(&model, &found);
    /// assert_eq!(map.rows.len(), 1);
    /// assert_eq!((map.rows[0].layers, map.weight_bytes()), (5, 4));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn new(model: &Model, found: &[Diagnostic]) -> Self {
        let mut building = Building { model, found: findings(found), census: Census::default(), rows: Vec::new() };
        let shared = building.shared_ranges();
        building.build(&shared);
        Self { rows: fold(building.rows) }
    }

    /// Returns the size of all constants in bytes. Shared bytes are counted once.
    #[must_use]
    pub fn weight_bytes(&self) -> u64 {
        self.rows.iter().flat_map(|row| &row.weights).map(|weight| weight.bytes).sum()
    }
}

/// The blocks of a graph and the layers between them, without constants that several of them share.
pub(crate) fn parts(graph: &Graph, roles: &LayerMap<Role>) -> Vec<Part> {
    blocks::parts(graph, roles).parts
}

/// Numbers of errors and warnings, by layer.
type FindingCounts = HashMap<Place, HashMap<LayerId, (usize, usize)>>;

fn findings(found: &[Diagnostic]) -> FindingCounts {
    let mut counts = FindingCounts::default();
    for diagnostic in found {
        let Some(layer) = &diagnostic.layer else { continue };
        let count = counts.entry(layer.place.clone()).or_default().entry(layer.id).or_default();
        match diagnostic.severity {
            Severity::Error => count.0 += 1,
            Severity::Warning => count.1 += 1,
            Severity::Note => {}
        }
    }
    counts
}

/// Family of blocks: the graph that contains them, and its number.
type Family = (Place, usize);

/// Range of a constant's bytes in the weights.
type ByteSpan = (i64, i64);

struct Building<'a> {
    model: &'a Model,
    found: FindingCounts,
    census: Census,
    /// The rows, each with its family.
    rows: Vec<(Option<Family>, Row)>,
}

impl<'a> Building<'a> {
    /// Finds the blocks of each graph, and the blocks that use each range of the weights.
    fn shared_ranges(&self) -> SharedBlocks<'a> {
        let mut shared = SharedBlocks { graphs: Vec::new(), ranges: HashMap::default() };
        let mut count = 0;
        for (place, graph) in self.model.walk() {
            let roles = roles(graph);
            let found = blocks::parts(graph, &roles);
            for part in &found.parts {
                for layer in part.layers.iter().filter_map(|&id| graph.layer(id)) {
                    if let Some(range) = Census::range(layer).filter(|_| ops::kind(layer) == LayerKind::Constant) {
                        shared
                            .ranges
                            .entry(range)
                            .and_modify(|user| *user = user.filter(|&it| it == count))
                            .or_insert(Some(count));
                    }
                }
                count += 1;
            }
            for layer in found.shared.iter().filter_map(|&id| graph.layer(id)) {
                if let Some(range) = Census::range(layer) {
                    shared.ranges.insert(range, None);
                }
            }
            shared.graphs.push((place, graph, roles, found));
        }
        shared
    }

    fn build(&mut self, shared: &SharedBlocks<'a>) {
        let (mut several, mut unused, mut in_blocks) = (Vec::new(), Vec::new(), 0);
        for (place, graph, roles, found) in &shared.graphs {
            let quantized = schemes::find(graph, self.model.weights());
            let schemes = quantized.into_iter().map(|it| (it.codes, it.scheme)).collect();
            let stored = blocks::StoredPaths::new(graph, roles);
            for part in &found.parts {
                let (elsewhere, own): (Vec<LayerId>, Vec<LayerId>) = part.layers.iter().partition(|&&id| {
                    let range =
                        graph.layer(id).filter(|layer| ops::kind(layer) == LayerKind::Constant).and_then(Census::range);
                    range.is_some_and(|range| shared.ranges.get(&range) == Some(&None))
                });
                in_blocks += elsewhere.len();
                several.extend(elsewhere.iter().map(|&id| (*graph, id)));
                let mut row = self.row(place, graph, part, roles, &own);
                row.paths = paths::of(graph, roles, &stored, &part.layers, &schemes);
                row.form = Form::new(graph, roles, &part.layers);
                self.rows.push((part.family.map(|family| (place.clone(), family)), row));
            }
            several.extend(found.shared.iter().map(|&id| (*graph, id)));
            unused.extend(found.unused.iter().map(|&id| (*graph, id)));
        }
        self.rest("shared by several", &several, in_blocks);
        self.rest("not used", &unused, 0);
    }

    fn rest(&mut self, name: &str, layers: &[(&Graph, LayerId)], in_blocks: usize) {
        let mut weights = BTreeMap::new();
        for layer in layers.iter().filter_map(|&(graph, id)| graph.layer(id)) {
            self.census.add(layer, &mut weights);
        }
        if !weights.is_empty() {
            let part = Part {
                name: name.to_owned(),
                family: None,
                number: None,
                layers: layers.iter().map(|&(_, id)| id).collect(),
            };
            let new = Row::new(&Place::default(), &part);
            let row = Row { layers: new.layers - in_blocks, weights: by_bytes(weights), ..new };
            self.rows.push((None, row));
        }
    }

    fn row(&mut self, place: &Place, graph: &Graph, part: &Part, roles: &LayerMap<Role>, own: &[LayerId]) -> Row {
        let mut row = Row::new(place, part);
        let (mut weights, mut computed, mut lossy) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let found = self.found.get(place);
        for layer in own.iter().filter_map(|&id| graph.layer(id)) {
            self.census.add(layer, &mut weights);
        }
        for layer in part.layers.iter().filter_map(|&id| graph.layer(id)) {
            if roles.get(layer.id()) == Some(&Role::Data) {
                layer.outputs().iter().for_each(|port| *computed.entry(port.element_type()).or_default() += 1);
            }
            if let Some(conversion) = ops::conversion(graph, layer)
                && !conversion.effect(graph, self.model.weights(), layer).is_exact()
            {
                for (from, loses) in conversion.lossy() {
                    lossy.entry((from, conversion.to)).or_insert((0, loses)).0 += 1;
                }
            }
            row.marks += usize::from(Marks::of(layer, self.model.version()).keeps_precision());
            if let Some((errors, warnings)) = found.and_then(|found| found.get(&layer.id())) {
                row.errors += errors;
                row.warnings += warnings;
            }
        }
        row.weights = by_bytes(weights);
        row.computed = counted(computed);
        let lossy = lossy.into_iter().map(|((from, to), (count, loses))| Lossy { from, to, count, loses });
        row.lossy = by_size(lossy, |lossy| lossy.count);
        row
    }
}

/// Blocks of all graphs, and the block that uses each range of the weights; `None` if several do.
struct SharedBlocks<'a> {
    graphs: Vec<(Place, &'a Graph, LayerMap<Role>, blocks::Parts<'a>)>,
    ranges: HashMap<ByteSpan, Option<usize>>,
}

fn by_bytes(weights: BTreeMap<ElementType, Weight>) -> Vec<Weight> {
    by_size(weights.into_values(), |weight| weight.bytes)
}

impl Row {
    fn new(place: &Place, part: &Part) -> Self {
        Self {
            name: part.name.clone(),
            path: place.path().to_owned(),
            blocks: 1,
            layers: part.layers.len(),
            weights: Vec::new(),
            paths: Vec::new(),
            computed: Vec::new(),
            lossy: Vec::new(),
            marks: 0,
            errors: 0,
            warnings: 0,
            differs: Vec::new(),
            parts: vec![part.clone()],
            place: place.clone(),
            form: Form::default(),
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let counts = |row: &Self| (row.layers, row.marks, row.errors, row.warnings);
        counts(self) == counts(other)
            && (&self.weights, &self.paths, &self.computed, &self.lossy)
                == (&other.weights, &other.paths, &other.computed, &other.lossy)
            && self.form == other.form
    }

    fn extend(&mut self, next: Self) {
        for (weight, more) in self.weights.iter_mut().zip(&next.weights) {
            weight.constants += more.constants;
            weight.values += more.values;
            weight.bytes += more.bytes;
        }
        for (path, more) in self.paths.iter_mut().zip(&next.paths) {
            path.constants += more.constants;
            path.bytes += more.bytes;
        }
        self.computed.iter_mut().zip(&next.computed).for_each(|(count, more)| count.count += more.count);
        self.lossy.iter_mut().zip(&next.lossy).for_each(|(lossy, more)| lossy.count += more.count);
        self.blocks += 1;
        self.layers += next.layers;
        self.marks += next.marks;
        self.errors += next.errors;
        self.warnings += next.warnings;
        self.parts.extend(next.parts);
    }
}

/// Merges equal neighbouring blocks, and describes how blocks differ from most of their family.
fn fold(mut rows: Vec<(Option<Family>, Row)>) -> Vec<Row> {
    let mut families = HashMap::<Family, Vec<usize>>::default();
    for (at, (family, _)) in rows.iter().enumerate() {
        if let Some(family) = family {
            families.entry(family.clone()).or_default().push(at);
        }
    }
    for members in families.into_values() {
        let forms: Vec<&Form> = members.iter().map(|&at| &rows[at].1.form).collect();
        let names: Vec<&str> = members.iter().map(|&at| rows[at].1.name.as_str()).collect();
        for (at, differs) in members.iter().zip(compare(&forms, &names)) {
            rows[*at].1.differs = differs;
        }
    }
    let mut folded: Vec<(Option<Family>, Row, Row)> = Vec::new();
    for (family, row) in rows {
        match folded.last_mut() {
            Some((known, first, all)) if family.is_some() && *known == family && first.is_like(&row) => all.extend(row),
            _ => folded.push((family, row.clone(), row)),
        }
    }
    let named = folded.into_iter().map(|(_, first, mut row)| {
        if let [.., last] = &row.parts[..]
            && row.blocks > 1
        {
            let number = last.name.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            row.name = format!("{}–{number}", first.name);
        }
        row
    });
    named.collect()
}
