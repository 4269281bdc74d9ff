//! Lists that are computed from shapes, and the source of each element.

use super::values;
use crate::model::graph::{Graph, Layer, Output};
use crate::model::weights::Weights;

/// Maximum number of layers between a list and the shapes that it depends on.
const DEEPEST: usize = 16;
/// Maximum number of elements of a list that is traced.
const LONGEST: usize = 64;

/// Element of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Number(i64),
    Dim(Output, usize),
    Unknown,
}

/// `None` if the number of elements is unknown.
pub(super) fn parts(graph: &Graph, weights: &Weights, tensor: Output) -> Option<Vec<Part>> {
    ShapeReader { graph, weights }.of(tensor, DEEPEST).filter(|parts| parts.len() <= LONGEST)
}

struct ShapeReader<'a> {
    graph: &'a Graph,
    weights: &'a Weights,
}

impl ShapeReader<'_> {
    fn of(&self, tensor: Output, depth: usize) -> Option<Vec<Part>> {
        let known = |tensor: Output| {
            let layer = self.graph.layer(tensor.layer)?;
            let found = self.computed(layer, depth.checked_sub(1)?)?;
            Some(found)
        };
        known(tensor).or_else(|| {
            let count = self.graph.output(tensor)?.shape().element_count()?;
            (count <= LONGEST as u64).then(|| vec![Part::Unknown; count as usize])
        })
    }

    fn computed(&self, layer: &Layer, depth: usize) -> Option<Vec<Part>> {
        let name = super::operations::operation_of(layer);
        let sources = self.graph.producers(layer.id());
        let source = |at: usize| sources.get(at).copied().flatten();
        match name {
            "Constant" => self.numbers(layer.id().output(0)).map(|it| it.into_iter().map(Part::Number).collect()),
            "ShapeOf" => {
                let of = source(0)?;
                let dims = self.graph.output(of)?.shape().dims()?;
                let part = |(axis, dim): (usize, &crate::model::shape::Dim)| {
                    dim.value().map_or(Part::Dim(of, axis), Part::Number)
                };
                Some(dims.iter().enumerate().map(part).collect())
            }
            "Convert" | "Squeeze" | "Unsqueeze" | "Reshape" => self.of(source(0)?, depth),
            "Concat" => {
                let lists = sources.iter().map(|&source| self.of(source?, depth)).collect::<Option<Vec<_>>>()?;
                Some(lists.concat())
            }
            "Gather" => {
                let list = self.list(source(0)?, depth)?;
                let places = self.numbers(source(1)?)?;
                let is_first = self.numbers(source(2)?)?.iter().all(|&axis| axis == 0 || axis == -1);
                let place = |&at: &i64| usize::try_from(if at < 0 { at + list.len() as i64 } else { at }).ok();
                let picked = places.iter().map(|at| list.get(place(at)?).copied());
                picked.collect::<Option<Vec<_>>>().filter(|_| is_first)
            }
            "Slice" | "StridedSlice" => {
                let list = self.list(source(0)?, depth)?;
                let cut = super::cut::cut(self.graph, self.weights, layer, &[list.len()])?;
                list.get(cut.first()?.clone()).map(<[Part]>::to_vec)
            }
            _ => None,
        }
    }

    fn list(&self, tensor: Output, depth: usize) -> Option<Vec<Part>> {
        let rank = self.graph.output(tensor)?.shape().rank()?;
        if rank == 1 { self.of(tensor, depth) } else { None }
    }

    fn numbers(&self, tensor: Output) -> Option<Vec<i64>> {
        let array = values::values(self.graph, self.weights, tensor)?;
        Some(array.to_integers().to_vec())
    }
}
