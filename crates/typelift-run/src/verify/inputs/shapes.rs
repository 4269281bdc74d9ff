//! Search for lengths of dynamic dimensions that are valid in two models.

use std::collections::BTreeMap;
use std::iter;

use foldhash::HashSet;
use typelift::edit::Edit;
use typelift::edit::inputs_outputs::End;
use typelift::infer::infer;
use typelift::model::graph::{LayerId, Model};
use typelift::model::shape::{Dim, Shape};
use typelift::promote::ElementType;

use crate::verify::coverage;
use crate::verify::error::{Side, VerifyError};
use crate::verify::pairing::{Pair, ids};
use typelift::ops::{self, LayerKind};

/// The shapes of all paired inputs.
pub(crate) type Shapes = Vec<Vec<usize>>;

/// Lengths that are tried for axes of images and sequences of features.
const SIZES: [i64; 20] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 224, 256, 320, 512, 640];
/// Shapes that are tried for an input of dynamic rank.
const RANKS: [&[i64]; 6] = [&[2, 3], &[3], &[1, 3, 8, 8], &[], &[2, 3, 4], &[1]];
/// The types that are tried for inputs of any type.
const TYPES: [ElementType; 3] = [ElementType::F32, ElementType::F16, ElementType::I64];
/// Maximum number of combinations that are inferred for one sample.
const MOST_TRIED: usize = 150;
/// Number of elements along an axis that tests a layer which mixes them.
const LONG: i64 = 4;
/// Number of larger shapes that are found, and its maximum if layers still mix along short axes.
const LEAST_LARGER: usize = 3;
const MOST_LARGER: usize = 24;
/// Maximum number of elements of a computed tensor with larger shapes.
const MOST_ELEMENTS: u64 = 1 << 22;

/// Dynamic dimensions that get the same length: the same axis of inputs whose names differ only in numbers.
#[derive(Debug)]
struct Group {
    lower: i64,
    upper: i64,
    /// True for axes after the first one of inputs with three axes or more.
    is_spatial: bool,
    /// True for axis 1 of inputs with four axes: that of the channels of images.
    is_channel: bool,
    /// True for the first axis of inputs with two axes or more.
    is_batch: bool,
    /// Input and axis.
    members: Vec<(usize, usize)>,
}

/// Two models whose inputs get fixed shapes.
pub(crate) struct Sizing<'m> {
    models: [&'m Model; 2],
    inputs: [Vec<LayerId>; 2],
    pairs: &'m [Pair],
    /// The declared shapes, which both models accept.
    declared: Vec<Shape>,
    groups: Vec<Group>,
}

impl<'m> Sizing<'m> {
    /// Collects the dynamic dimensions of paired inputs. `asked` contains the shapes from the user, by pair.
    pub(crate) fn new(a: &'m Model, b: &'m Model, pairs: &'m [Pair], asked: &BTreeMap<usize, Shape>) -> Self {
        let inputs = [ids(End::Input, a), ids(End::Input, b)];
        let shape = |model: &Model, id: LayerId| {
            model.graph().output(id.output(0)).map_or_else(Shape::dynamic, |port| port.shape().clone())
        };
        let both = |(at, pair): (usize, &Pair)| {
            let (own, other) = (shape(a, inputs[0][pair.a]), shape(b, inputs[1][pair.b]));
            let merged = own.merge(&other).unwrap_or(own);
            asked.get(&at).map_or(merged.clone(), |asked| merged.merge(asked).unwrap_or_else(|_| asked.clone()))
        };
        let declared: Vec<Shape> = pairs.iter().enumerate().map(both).collect();
        let groups = groups(&declared, pairs);
        Self { models: [a, b], inputs, pairs, declared, groups }
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.groups.is_empty() || self.declared.iter().any(|shape| shape.dims().is_none())
    }

    pub(crate) fn smallest(&self) -> impl Iterator<Item = Shapes> {
        let uniform = |size: i64| self.groups.iter().map(move |_| size).collect::<Vec<_>>();
        let spatial = |size: i64| {
            self.groups.iter().map(move |group| if group.is_spatial { size } else { 1 }).collect::<Vec<_>>()
        };
        let image = |size: i64| {
            let length = move |group: &Group| match group {
                Group { is_channel: true, .. } => 3,
                Group { is_spatial: true, .. } => size,
                _ => 1,
            };
            self.groups.iter().map(length).collect::<Vec<_>>()
        };
        let attempts = SIZES.iter().flat_map(move |&size| {
            let plain = [spatial(size), uniform(size), image(size)];
            let repaired = if size < 4 { self.repaired(&uniform(size), size) } else { Vec::new() };
            plain.into_iter().chain(repaired)
        });
        self.accepted(attempts, u64::MAX).map(|(shapes, _)| shapes)
    }

    /// Returns valid shapes that are larger than `smallest`. The first are those with the fewest layers of A that mix
    /// values along an axis of length 1.
    pub(crate) fn larger(&self, smallest: &Shapes) -> Vec<Shapes> {
        let least: Vec<i64> = self
            .groups
            .iter()
            .map(|group| {
                let &(input, axis) = group.members.first().unwrap_or(&(0, 0));
                smallest.get(input).and_then(|dims| dims.get(axis)).map_or(1, |&dim| dim as i64)
            })
            .collect();
        let grown = |size: i64, factor: i64, added: i64| {
            let length = |(group, &least): (&Group, &i64)| {
                if group.is_channel {
                    least
                } else if group.is_spatial && least > 4 {
                    least * factor + added
                } else {
                    size
                }
            };
            self.groups.iter().zip(&least).map(length).collect::<Vec<_>>()
        };
        let plain = |size: i64| [grown(size, 2, 0), grown(size, 1, 32), grown(size, 1, 0)];
        // What shortens an axis leaves one element of small lengths, so lengths grow: all but the batch, or one alone.
        let multiplied = |factor: i64, batch: i64, only: Option<usize>| {
            let length = |(at, (group, &least)): (usize, (&Group, &i64))| match only {
                _ if group.is_channel => least,
                Some(only) if at != only => least.max(batch),
                None if group.is_batch => least.max(batch),
                _ => least.max(2) * factor,
            };
            self.groups.iter().zip(&least).enumerate().map(length).collect::<Vec<_>>()
        };
        let together = [2, 1].into_iter().flat_map(|batch| [2, 4, 8, 16, 32, 64, 128].map(|factor| (batch, factor)));
        let alone = [2, 1].into_iter().flat_map(|batch| [4, 16, 64].map(|factor| (batch, factor)));
        let alone = alone.flat_map(|(batch, factor)| {
            (0..self.groups.len()).map(|at| multiplied(factor, batch, Some(at))).collect::<Vec<_>>()
        });
        let attempts = [3, 2].into_iter().flat_map(plain);
        let attempts = attempts.chain(together.map(|(batch, factor)| multiplied(factor, batch, None)));
        let attempts = attempts.chain(alone);
        let attempts = attempts.chain([3, 2, 4, 5].into_iter().flat_map(|size| {
            let plain = plain(size);
            let repaired = self.repaired(&plain[0], size);
            plain.into_iter().chain(repaired).collect::<Vec<_>>()
        }));
        let mut found: Vec<([usize; 2], Shapes)> = Vec::new();
        for (shapes, short) in self.accepted(attempts, MOST_ELEMENTS).filter(|(shapes, _)| shapes != smallest) {
            found.push((short, shapes));
            // The device may refuse the first.
            let is_enough = found.len() >= LEAST_LARGER && found.iter().any(|(short, _)| *short == [0, 0]);
            if is_enough || found.len() == MOST_LARGER {
                break;
            }
        }
        found.sort_by_key(|(short, _)| *short);
        found.into_iter().map(|(_, shapes)| shapes).collect()
    }

    /// Returns combinations with one group of dimensions changed: to the sum of others, or to a batch of 1.
    fn repaired(&self, lengths: &[i64], size: i64) -> Vec<Vec<i64>> {
        let changed = |at: usize, length: i64| {
            let mut lengths = lengths.to_vec();
            lengths[at] = length;
            lengths
        };
        let all = [2 * size, 1, size + 1].into_iter().flat_map(|length| (0..lengths.len()).map(move |at| (at, length)));
        all.map(|(at, length)| changed(at, length)).collect()
    }

    /// Filters combinations by inference: first those without empty tensors, then those with. Each has the numbers of
    /// layers of A that mix values along an axis of length 1, and along one that is shorter than [`LONG`].
    fn accepted(
        &self,
        attempts: impl Iterator<Item = Vec<i64>>,
        most: u64,
    ) -> impl Iterator<Item = (Shapes, [usize; 2])> {
        let ranks = if self.declared.iter().any(|shape| shape.dims().is_none()) { &RANKS[..] } else { &RANKS[..1] };
        let mut seen = HashSet::default();
        let shapes = attempts
            .flat_map(move |lengths| ranks.iter().map(move |rank| self.shapes(&lengths, rank)).collect::<Vec<_>>());
        let mut tried = shapes.filter(move |shapes| seen.insert(shapes.clone())).take(MOST_TRIED).fuse();
        let mut empty = Vec::new();
        iter::from_fn(move || {
            for shapes in tried.by_ref() {
                match self.verdict(&shapes, most) {
                    Some((true, short)) => return Some((shapes, short)),
                    Some((false, short)) => empty.push((shapes, short)),
                    None => {}
                }
            }
            empty.pop()
        })
    }

    fn shapes(&self, lengths: &[i64], rank: &[i64]) -> Shapes {
        let mut shapes: Vec<Vec<i64>> = self
            .declared
            .iter()
            .map(|shape| match shape.dims() {
                Some(dims) => dims.iter().map(|dim| dim.lower()).collect(),
                None => rank.to_vec(),
            })
            .collect();
        for (group, &length) in self.groups.iter().zip(lengths) {
            for &(input, axis) in &group.members {
                shapes[input][axis] = length.clamp(group.lower, group.upper);
            }
        }
        shapes.into_iter().map(|dims| dims.into_iter().map(|dim| usize::try_from(dim).unwrap_or(0)).collect()).collect()
    }

    /// Returns true if both models accept the shapes, false if an output is then empty, and `None` if a model does not
    /// accept them or a tensor is too large. The numbers are those of [`accepted`](Self::accepted).
    fn verdict(&self, shapes: &Shapes, most: u64) -> Option<(bool, [usize; 2])> {
        let (mut has_values, mut short) = (true, [0; 2]);
        for side in 0..2 {
            let model = self.with_shapes(side, shapes).ok()?;
            let is_empty = |port: &typelift::model::graph::OutputPort| {
                port.shape().dims().is_some_and(|dims| dims.contains(&Dim::fixed(0)))
            };
            let graph = model.graph();
            let is_large = |port: &typelift::model::graph::OutputPort| {
                port.shape().element_count().is_some_and(|count| count > most)
            };
            if self.is_open()
                && graph
                    .layers()
                    .any(|layer| ops::kind(layer) != LayerKind::Constant && layer.outputs().iter().any(is_large))
            {
                return None;
            }
            if side == 0 {
                short = [2, LONG].map(|least| coverage::short(&model, self.models[0], least).len());
            }
            let mut sources = model.outputs().filter_map(|layer| graph.output(graph.producer(layer.id().input(0))?));
            has_values &= !sources.any(is_empty);
        }
        Some((has_values, short))
    }

    /// Returns a model with fixed shapes, inferred. All inputs of any type get the first of [`TYPES`] that inference
    /// accepts.
    ///
    /// # Errors
    /// Inference refuses the shapes.
    pub(crate) fn with_shapes(&self, side: usize, shapes: &Shapes) -> Result<Model, VerifyError> {
        let of = |pair: &Pair| self.inputs[side].get(if side == 0 { pair.a } else { pair.b }).copied();
        let ids: Vec<LayerId> = self.pairs.iter().filter_map(of).collect();
        let graph = self.models[side].graph();
        let is_of_any_type =
            |id: &LayerId| graph.output(id.output(0)).is_some_and(|port| port.element_type() == ElementType::Dynamic);
        let untyped: Vec<LayerId> = ids.iter().copied().filter(is_of_any_type).collect();
        let types = if untyped.is_empty() { &TYPES[..1] } else { &TYPES };
        let mut refused = VerifyError::NoShapes;
        for ty in types {
            let mut model = self.models[side].clone();
            let set = |graph: &mut Edit<'_>| {
                untyped.iter().try_for_each(|id| graph.set_attribute(*id, "element_type", ty.name()))?;
                ids.iter().zip(shapes).try_for_each(|(id, dims)| {
                    let shape = Shape::fixed(dims.iter().map(|&dim| dim as i64));
                    graph.set_attribute(*id, "shape", shape.to_attribute())
                })
            };
            model.edit(set)?;
            match infer(&mut model).into_iter().find(|found| found.is_error()) {
                Some(found) => refused = VerifyError::IllTyped { side: Side::of(side), found: Box::new(found) },
                None => return Ok(model),
            }
        }
        Err(refused)
    }
}

/// Groups the dynamic dimensions of inputs by name and axis.
fn groups(declared: &[Shape], pairs: &[Pair]) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut known: BTreeMap<(String, usize), usize> = BTreeMap::new();
    for (input, (shape, pair)) in declared.iter().zip(pairs).enumerate() {
        let dims = shape.dims().unwrap_or_default();
        for (axis, dim) in dims.iter().enumerate().filter(|(_, dim)| !dim.is_fixed()) {
            let upper = dim.upper().unwrap_or(i64::MAX);
            let at = *known.entry((without_numbers(&pair.name), axis)).or_insert_with(|| {
                groups.push(Group {
                    lower: 0,
                    upper: i64::MAX,
                    is_spatial: axis > 0 && dims.len() > 2,
                    is_channel: axis == 1 && dims.len() == 4,
                    is_batch: axis == 0 && dims.len() > 1,
                    members: Vec::new(),
                });
                groups.len() - 1
            });
            let group = &mut groups[at];
            group.upper = group.upper.min(upper);
            group.lower = group.lower.max(dim.lower()).min(group.upper);
            group.members.push((input, axis));
        }
    }
    groups
}

/// Replaces each number in a name by `#`: `past.#.key`.
fn without_numbers(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        match c {
            '0'..='9' if text.ends_with('#') => {}
            '0'..='9' => text.push('#'),
            c => text.push(c),
        }
    }
    text
}
