//! Precision map: the blocks of a model with the element types in which each stores and computes, and its possible
//! losses.

mod paths;
mod value;

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};
use typelift_promote::{ElementType, Fidelity};

use crate::base::hash::HashMap;
use crate::edit::precision_marks::Marks;
use crate::explain::blocks::{Block, Blocks, Division, Figures};
use crate::explain::stats::{Census, TypeCount, Weight, by_size, map_of, name_of};
use crate::findings::{Diagnostic, Severity};
use crate::model::graph::{Graph, LayerId, Model, Place};
use crate::ops::{self, Effect, LayerKind};

pub use crate::infer::blocks::roles::{Role, roles};
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
#[derive(Clone, Debug, Default, Serialize)]
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
    pub parts: Vec<Block>,
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
    /// The number of those that convert integers which count or select: shapes, indices and conditions.
    pub indices: usize,
}

pub(crate) fn losses<S: Serializer>(fidelity: &Fidelity, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(fidelity.losses().map(typelift_promote::Loss::name))
}

impl PrecisionMap {
    /// Creates the map of an inferred model with its findings. Of the weights, only scales, zero points and samples are read.
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
    pub fn new(model: &Model, found: &[Diagnostic]) -> Self {
        Self::of(model, found, &Division::of_graphs(model))
    }

    /// Creates the map and finds the [blocks](Blocks::new) in one pass.
    #[must_use]
    pub fn with_blocks<'a>(model: &'a Model, found: &[Diagnostic]) -> (Self, Blocks, Vec<(Place, Ways<'a>)>) {
        let graphs = Division::of_graphs(model);
        let ways = graphs.iter().map(|it| (it.place.clone(), Ways::of(it.figures.facts.clone()))).collect();
        (Self::of(model, found, &graphs), Blocks::of(graphs), ways)
    }

    fn of(model: &Model, found: &[Diagnostic], graphs: &[Division<'_>]) -> Self {
        let mut building = Building { model, found: findings(found), census: Census::default(), rows: Vec::new() };
        building.build(graphs);
        Self { rows: fold(building.rows) }
    }

    /// Returns the size of all constants in bytes. Shared bytes are counted once.
    pub fn weight_bytes(&self) -> u64 {
        self.rows.iter().flat_map(|row| &row.weights).map(|weight| weight.bytes).sum()
    }
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

/// Blocks that use a range of bytes in the weights: the number of the only one, or `None` if there are several.
type Users = HashMap<(i64, i64), Option<usize>>;

struct Building<'a> {
    model: &'a Model,
    found: FindingCounts,
    census: Census,
    rows: Vec<Row>,
}

impl Building<'_> {
    fn build(&mut self, graphs: &[Division<'_>]) {
        let mut users = Users::default();
        let blocks = graphs.iter().flat_map(|found| found.blocks.iter().map(|block| (found.figures.graph, block)));
        for (at, (graph, block)) in blocks.enumerate() {
            for range in block.layers.iter().filter_map(|&id| constant_range(graph, id)) {
                users.entry(range).and_modify(|user| *user = user.filter(|&it| it == at)).or_insert(Some(at));
            }
        }
        for found in graphs {
            users.extend(found.shared.iter().filter_map(|&id| Some((constant_range(found.figures.graph, id)?, None))));
        }
        let (mut several, mut unused, mut in_blocks) = (Vec::new(), Vec::new(), 0);
        for found in graphs {
            let graph = found.figures.graph;
            for block in &found.blocks {
                let (elsewhere, own): (Vec<LayerId>, Vec<LayerId>) = block
                    .layers
                    .iter()
                    .partition(|&&id| constant_range(graph, id).is_some_and(|range| users.get(&range) == Some(&None)));
                in_blocks += elsewhere.len();
                several.extend(elsewhere.into_iter().map(|id| (graph, id)));
                let paths = paths::of(&found.figures, &block.layers);
                let row = Row { paths, ..self.row(&found.figures, block.clone(), &own) };
                self.rows.push(row);
            }
            several.extend(found.shared.iter().map(|&id| (graph, id)));
            unused.extend(found.unused.iter().map(|&id| (graph, id)));
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
            let ids = layers.iter().map(|&(_, id)| id).collect();
            let part = Block { name: name.to_owned(), path: name.to_owned(), layers: ids, ..Block::default() };
            let row = Row { layers: layers.len() - in_blocks, weights: by_bytes(weights), ..Row::new(part) };
            self.rows.push(row);
        }
    }

    fn row(&mut self, figures: &Figures<'_>, block: Block, own: &[LayerId]) -> Row {
        let (graph, mut row) = (figures.graph, Row::new(block));
        let (mut weights, mut lossy) = (BTreeMap::new(), BTreeMap::<_, Lossy>::new());
        let found = self.found.get(&row.parts[0].place);
        for layer in own.iter().filter_map(|&id| graph.layer(id)) {
            self.census.add(layer, &mut weights);
        }
        for layer in row.parts[0].layers.iter().filter_map(|&id| graph.layer(id)) {
            if let Some(conversion) = ops::conversion(graph, layer) {
                let Effect { losses, .. } = conversion.effect(graph, self.model.weights(), layer);
                for (from, possible) in conversion.lossy().filter(|_| losses.is_none_or(|lost| !lost.is_exact())) {
                    let loses = losses.filter(|_| conversion.from.len() == 1).unwrap_or(possible);
                    let empty = || Lossy { from, to: conversion.to, count: 0, loses, indices: 0 };
                    let known = lossy.entry((from, conversion.to)).or_insert_with(empty);
                    known.count += 1;
                    known.loses = known.loses.losses().chain(loses.losses()).collect();
                    known.indices += usize::from(figures.facts.indices().converts(graph, layer));
                }
            }
            row.marks += usize::from(Marks::of(layer, self.model.version()).keeps_precision());
            if let Some((errors, warnings)) = found.and_then(|found| found.get(&layer.id())) {
                row.errors += errors;
                row.warnings += warnings;
            }
        }
        row.weights = by_bytes(weights);
        row.lossy = by_size(lossy.into_values(), |lossy| lossy.count);
        row
    }
}

fn constant_range(graph: &Graph, id: LayerId) -> Option<(i64, i64)> {
    graph.layer(id).filter(|layer| ops::kind(layer) == LayerKind::Constant).and_then(Census::range)
}

fn by_bytes(weights: BTreeMap<ElementType, Weight>) -> Vec<Weight> {
    by_size(weights.into_values(), |weight| weight.bytes)
}

impl Row {
    fn new(block: Block) -> Self {
        Self {
            name: block.name.clone(),
            path: block.place.path().to_owned(),
            blocks: 1,
            layers: block.layers.len(),
            computed: block.computed.clone(),
            differs: block.differs.clone(),
            parts: vec![block],
            ..Self::default()
        }
    }

    /// True for a block of the same family that differs from this one in nothing.
    fn is_like(&self, other: &Self) -> bool {
        let [one, two] = [self, other].map(|row| &row.parts[0]);
        let counts = |row: &Self| (row.layers, row.marks, row.errors, row.warnings);
        one.family.is_some()
            && (&one.place, one.family, &one.form) == (&two.place, two.family, &two.form)
            && one.differs == two.differs
            && counts(self) == counts(other)
            && (&self.weights, &self.paths, &self.lossy) == (&other.weights, &other.paths, &other.lossy)
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
        self.lossy.iter_mut().zip(&next.lossy).for_each(|(lossy, more)| {
            lossy.count += more.count;
            lossy.indices += more.indices;
        });
        self.blocks += 1;
        self.layers += next.layers;
        self.marks += next.marks;
        self.errors += next.errors;
        self.warnings += next.warnings;
        self.parts.extend(next.parts);
    }
}

/// Merges equal neighbouring blocks.
fn fold(rows: Vec<Row>) -> Vec<Row> {
    let mut folded: Vec<Vec<Row>> = Vec::new();
    for row in rows {
        match folded.last_mut() {
            Some(alike) if alike[0].is_like(&row) => alike.push(row),
            _ => folded.push(vec![row]),
        }
    }
    let joined = folded.into_iter().flat_map(|alike| {
        alike.into_iter().reduce(|mut row, next| {
            row.extend(next);
            row
        })
    });
    let named = joined.map(|mut row| {
        if let [first, .., last] = &row.parts[..] {
            let number = last.name.rsplit(|c: char| !c.is_ascii_digit()).next().unwrap_or_default();
            row.name = format!("{}–{number}", first.name);
        }
        row
    });
    named.collect()
}
