//! Blocks of a model as a tree: their layers, stored bytes, types, operations and parameters, and their differences.
//!
//! The top level has the numbered blocks of each graph, `model.layers.17`, in the order of the data, and the layers
//! before, between and after them. Below a block are the scopes of its layers' names, `model.layers.17.mlp`. Siblings are
//! blocks whose names differ in the number alone.
//!
//! Worked example: in a language model of 32 layers, `blocks.number(3)` returns `model.layers.3` with all layers whose
//! names say so and those that stand between them. If only this block computes in f32, its difference reads `computes in
//! f32, its 31 siblings in f16`.

mod differences;
mod figures;
mod scopes;
mod wiring;

use std::sync::Arc;

use serde::{Serialize, Serializer};
use typelift_promote::ElementType;

use super::stats::{TypeCount, map_of};
use crate::base::hash::HashSet;
use crate::infer::blocks::{self, Names, parts};
use crate::model::graph::{Graph, LayerId, Model, Output, Place};
use crate::model::weights::Weights;
use crate::precision::schemes::Scheme;
use crate::symbols::Formulas;

use self::differences::{Form, describe};
pub(crate) use self::figures::Figures;

/// The blocks of a model and its bodies.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
#[serde(transparent)]
pub struct Blocks {
    /// The blocks and the layers around them, in the order of the data, those of bodies last. Each layer is in one.
    pub list: Vec<Block>,
}

/// Block of a model, scope in a block, or layers between blocks.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct Block {
    /// The name: `model.layers.17`, `model.layers.17.mlp`, or `before model.layers.0`.
    pub name: String,
    /// The name after those of the surrounding bodies: `loop/body/model.layers.17`.
    pub path: String,
    /// The number among its siblings: 17 for `model.layers.17`; `None` for other scopes and layers between blocks.
    pub number: Option<u64>,
    /// The layers, those of its scopes included.
    #[serde(serialize_with = "ids_of")]
    pub layers: Vec<LayerId>,
    /// The constants by element type and scheme, the most bytes first. Bytes that constants share count once.
    pub weights: Vec<StoredWeights>,
    /// The number of weights: values of float constants and of integers in products, and codes of quantized constants,
    /// without scales and zero points.
    pub parameters: u64,
    /// The number of tensors computed in each element type, the most frequent first. Constants, tensors computed from
    /// constants alone, and shapes are not counted.
    #[serde(serialize_with = "map_of")]
    pub computed: Vec<TypeCount>,
    /// The multiply-accumulate operations of matrix products, convolutions, recurrent cells and attention. An open
    /// dimension counts as its lower bound, and as 1 at least.
    pub macs: u64,
    /// True if a dimension was open, so that `macs` is a lower bound.
    pub macs_is_least: bool,
    /// The multiply-accumulate operations as an expression over the model's open lengths, after
    /// [`add_formulas`](Blocks::add_formulas); `None` if they depend on data.
    pub macs_formula: Option<String>,
    /// The differences from siblings, in words: `computes in f32, its 31 siblings in f16`.
    pub differs: Vec<String>,
    /// The scopes and numbered blocks inside, in the order of the data.
    pub blocks: Vec<Block>,
    /// The graph of the layers.
    #[serde(skip)]
    pub place: Place,
    /// The family of siblings in this graph; `None` for layers between blocks.
    #[serde(skip)]
    pub family: Option<usize>,
    /// The properties in which siblings can differ; those of a block without siblings are unknown.
    #[serde(skip)]
    pub(crate) form: Arc<Form>,
}

/// Constants of one element type and scheme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredWeights {
    /// The element type in which they are stored.
    #[serde(serialize_with = "super::stats::name_of")]
    pub element_type: ElementType,
    /// The way in which they are quantized: `int4 asymmetric, groups of 128`; `None` for plain constants.
    pub scheme: Option<Scheme>,
    /// The number of constants.
    pub constants: usize,
    /// The size in bytes.
    pub bytes: u64,
}

fn ids_of<S: Serializer>(layers: &[LayerId], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(layers.iter().map(|id| id.0))
}

impl Blocks {
    /// Finds the blocks of an inferred model, in time that grows linearly with its size. Of the weights only scales, zero points
    /// and samples are read.
    ///
    /// # Examples
    /// ```
    /// let layer = |number, input| format!(
    ///     "x.layers.{number}.a = ReLU({input})\nx.layers.{number}.b = Exp(x.layers.{number}.a)\n\
    ///      x.layers.{number}.c = Abs(x.layers.{number}.b)\nx.layers.{number}.d = Sin(x.layers.{number}.c)\n");
    /// let text = format!("x = Parameter : f32[2]\n{}{}y = Result(x.layers.1.d)\n", layer(0, "x"), layer(1, "x.layers.0.d"));
    /// let mut model = typelift::Model::from_text(&text)?;
    /// typelift::infer(&mut model);
    ///
    /// let blocks = typelift::explain::blocks::Blocks::new(&model);
    /// let second = blocks.number(1).next().unwrap();
    /// assert_eq!((second.name.as_str(), second.layers.len()), ("x.layers.1", 4));
    /// assert!(second.differs.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn new(model: &Model) -> Self {
        Self::of(Division::of_graphs(model))
    }

    pub(crate) fn of(graphs: Vec<Division<'_>>) -> Self {
        let mut list = Vec::new();
        for mut found in graphs {
            let is_divided = found.blocks.iter().any(|block| block.number.is_some());
            for block in found.blocks.iter_mut().filter(|block| block.number.is_some() || !is_divided) {
                block.blocks = scopes::scopes(&found.figures, &found.names, block);
                describe(found.figures.flow(), &mut block.blocks);
            }
            list.append(&mut found.blocks);
            for (name, layers) in [("shared by several", found.shared), ("not used", found.unused)] {
                list.push(found.figures.block(&found.place, name, layers));
            }
        }
        list.retain(|block| !block.layers.is_empty());
        Self { list }
    }

    /// Adds the multiply-accumulate operations of all blocks and scopes as expressions.
    pub fn add_formulas(&mut self, model: &Model, formulas: &mut Formulas<'_>) {
        fn add(blocks: &mut [Block], model: &Model, formulas: &mut Formulas<'_>) {
            for block in blocks {
                let graph = model.graph_at(&block.place);
                let formula = graph.and_then(|graph| formulas.macs_of_layers(graph, &block.layers));
                block.macs_formula = formula.map(|formula| formula.text.to_owned());
                add(&mut block.blocks, model, formulas);
            }
        }
        add(&mut self.list, model, formulas);
    }

    /// Returns the blocks with a number: one for each family of siblings that has it.
    pub fn number(&self, number: u64) -> impl Iterator<Item = &Block> {
        self.list.iter().filter(move |block| block.number == Some(number))
    }

    /// Returns the block or scope with a path or a name, as far as it is unique.
    pub fn find(&self, name: &str) -> Option<&Block> {
        let mut pending: Vec<&Block> = self.list.iter().rev().collect();
        while let Some(block) = pending.pop() {
            if block.path == name || block.name == name {
                return Some(block);
            }
            pending.extend(block.blocks.iter().rev());
        }
        None
    }
}

/// Blocks of one graph without scopes, and the constants that belong to none of them.
pub(crate) struct Division<'a> {
    pub(crate) place: Place,
    pub(crate) figures: Figures<'a>,
    names: Names<'a>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) shared: Vec<LayerId>,
    pub(crate) unused: Vec<LayerId>,
}

impl<'a> Division<'a> {
    pub(crate) fn of_graphs(model: &'a Model) -> Vec<Self> {
        model.walk().map(|(place, graph)| Self::new(place, graph, model.weights())).collect()
    }

    fn new(place: Place, graph: &'a Graph, weights: &'a Weights) -> Self {
        let figures = Figures::new(graph, weights);
        let found = parts(&figures.facts);
        let all = found.parts.into_iter().map(|part| Block {
            number: part.number,
            family: part.family,
            ..figures.block(&place, &part.name, part.layers)
        });
        let mut blocks: Vec<Block> = all.collect();
        describe(figures.flow(), &mut blocks);
        Self { place, figures, names: found.names, blocks, shared: found.shared, unused: found.unused }
    }
}

/// Returns the tensors through which data enters blocks of one graph, and those through which it leaves them.
/// Constants, shape computations and inputs of the model do not enter: they stay with the blocks.
///
/// Pass them to [`Edit::extract`](crate::edit::Edit::extract) to keep these blocks alone.
#[must_use]
pub fn border<'a>(model: &Model, blocks: impl IntoIterator<Item = &'a Block>) -> (Vec<Output>, Vec<Output>) {
    let mut place = Place::default();
    let mut inside = HashSet::default();
    for block in blocks {
        place = block.place.clone();
        inside.extend(block.layers.iter().copied());
    }
    model.graph_at(&place).map(|graph| blocks::border(graph, &inside)).unwrap_or_default()
}

impl Block {
    /// Returns the bytes of all constants in it.
    pub fn bytes(&self) -> u64 {
        self.weights.iter().map(|weights| weights.bytes).sum()
    }
}
