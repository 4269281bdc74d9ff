//! Lengths of dynamic dimensions that two models accept: they satisfy the constraints of both.

use std::collections::BTreeMap;
use std::iter;

use foldhash::HashSet;
use typelift::edit::Edit;
use typelift::edit::inputs_outputs::End;
use typelift::promote::ElementType;
use typelift::shape::{Dim, Reads, Shape, TensorType};
use typelift::{Layer, LayerId, Model, Output, infer};

use crate::verify::coverage;
use crate::verify::error::{Side, VerifyError};
use crate::verify::pairing::{Pair, ids};
use typelift::ops::{self, LayerKind};

/// The shapes of all paired inputs.
pub(crate) type Shapes = Vec<Vec<usize>>;

/// Lengths from which the smallest ones that fit are searched. A device may refuse those that constraints allow.
const LEAST: [usize; 9] = [1, 2, 3, 4, 8, 16, 32, 64, 224];
/// Ranks that are tried for inputs of dynamic rank.
const RANKS: [usize; 5] = [2, 1, 4, 0, 3];
/// The types that are tried for inputs of any type.
const TYPES: [ElementType; 3] = [ElementType::F32, ElementType::F16, ElementType::I64];
/// Number of elements along an axis that tests a layer which mixes them.
const LONG: i64 = 4;
/// Number of larger shapes that are found, because the device may refuse the first.
const MOST_LARGER: usize = 6;
/// Maximum number of elements of a computed tensor with larger shapes.
const MOST_ELEMENTS: u64 = 1 << 22;
/// Maximum number of times that lengths are changed in turn until they fit both models, or test all layers.
const MOST_ROUNDS: usize = 12;

/// Two models whose inputs get fixed shapes.
pub(crate) struct Sizing<'m> {
    models: [&'m Model; 2],
    inputs: [Vec<LayerId>; 2],
    pairs: &'m [Pair],
    variants: Vec<Variant>,
}

/// Declared shapes of known rank, and what both models then demand of lengths.
struct Variant {
    declared: Vec<Shape>,
    lengths: [typelift::Shapes; 2],
    /// Tensors of A with the axes along which layers mix values.
    mixed: Vec<(Output, i64)>,
}

impl<'m> Sizing<'m> {
    /// Finds what both models demand of the lengths of paired inputs. `asked` contains the shapes from the user, by pair.
    ///
    /// # Errors
    /// The shapes from the user do not fit.
    pub(crate) fn new(
        a: &'m Model,
        b: &'m Model,
        pairs: &'m [Pair],
        asked: &BTreeMap<usize, Shape>,
    ) -> Result<Self, VerifyError> {
        let inputs = [ids(End::Input, a), ids(End::Input, b)];
        let mut declared = Vec::new();
        for (at, pair) in pairs.iter().enumerate() {
            let [own, other] = [(a, inputs[0][pair.a]), (b, inputs[1][pair.b])].map(|(model, id)| {
                model.graph().output(id.output(0)).map_or_else(TensorType::dynamic, |port| port.tensor_type())
            });
            // Shapes from the user replace those of the models.
            if !asked.contains_key(&at) && !own.shape.is_compatible(&other.shape) {
                let reason = format!("the input `{}` is {own} in A and {other} in B: no shape fits both", pair.name);
                return Err(VerifyError::Unpaired(reason));
            }
            declared.push(own.shape.merge(&other.shape).unwrap_or(own.shape));
        }
        let wanted = declared.iter().enumerate().map(|(at, shape)| {
            asked.get(&at).map_or(shape.clone(), |asked| shape.merge(asked).unwrap_or_else(|_| asked.clone()))
        });
        let wanted: Vec<Shape> = wanted.collect();
        let mut sizing = Self { models: [a, b], inputs, pairs, variants: Vec::new() };
        let mut refused = None;
        for shapes in ranked(&wanted) {
            match sizing.variant(shapes) {
                Ok(variant) => sizing.variants.push(variant),
                Err(error) => refused = refused.or(Some(error)),
            }
        }
        let Some(refused) = refused.filter(|_| sizing.variants.is_empty()) else { return Ok(sizing) };
        // Without the shapes of the user, the constraints say why those do not fit.
        sizing.variants = ranked(&declared).filter_map(|shapes| sizing.variant(shapes).ok()).collect();
        let lengths =
            |shape: &Shape| shape.dims().unwrap_or_default().iter().map(|dim| dim.lower().max(1) as usize).collect();
        Err(sizing.fixed(&wanted.iter().map(lengths).collect()).err().unwrap_or(refused))
    }

    fn variant(&self, declared: Vec<Shape>) -> Result<Variant, VerifyError> {
        let models = [self.with_shapes(0, &declared)?, self.with_shapes(1, &declared)?];
        let mixed = coverage::mixing(&models[0]);
        Ok(Variant { declared, lengths: [typelift::shapes(&models[0]), typelift::shapes(&models[1])], mixed })
    }

    pub(crate) fn is_open(&self) -> bool {
        self.variants.len() != 1 || self.variants[0].declared.iter().any(|shape| !shape.is_static())
    }

    pub(crate) fn smallest(&self) -> impl Iterator<Item = Shapes> {
        let candidates = self.variants.iter().flat_map(|variant| {
            let hints = LEAST.into_iter().flat_map(|least| [1, least].map(|batch| variant.plain(least, batch)));
            let mut found: Vec<Shapes> = hints.map(|hints| self.near(variant, &hints)).collect();
            // Of shapes with as many elements, an even one: 8 x 8 rather than 1 x 64.
            found.sort_by_key(|shapes| {
                let counts =
                    shapes.iter().map(|dims| dims.iter().fold(1, |count: usize, &dim| count.saturating_mul(dim)));
                (counts.fold(0, usize::saturating_add), shapes.iter().flatten().max().copied())
            });
            found
        });
        self.accepted(candidates, u64::MAX).map(|(shapes, _)| shapes)
    }

    pub(crate) fn refusal(&self) -> VerifyError {
        let smallest = self.variants.first().map(|variant| self.near(variant, &variant.plain(1, 1)));
        smallest.and_then(|shapes| self.fixed(&shapes).err()).unwrap_or(VerifyError::NoShapes)
    }

    /// Shapes that both models accept and that are larger than `smallest`. The first are those with the fewest
    /// layers of A that mix values along an axis of length 1.
    pub(crate) fn larger(&self, smallest: &Shapes) -> Vec<Shapes> {
        let Some(variant) = self.variants.iter().find(|variant| variant.takes(smallest)) else { return Vec::new() };
        let least = |batch: usize, length: &dyn Fn(usize) -> usize| {
            variant.at_least(&|input, axis, is_batch| if is_batch { batch } else { length(smallest[input][axis]) })
        };
        let plain = |(length, batch): (usize, usize)| least(batch, &|smallest| smallest.max(length));
        let testing = [(3, 3), (2, 2), (2, 1)].map(plain).into_iter().map(|hints| self.testing(variant, hints));
        let factors = [1, 2, 4, 8, 16, 32, 64].into_iter().flat_map(|factor| [2, 1].map(|batch| (factor, batch)));
        let multiplied = factors.map(|(factor, batch)| least(batch, &|smallest| smallest.max(2) * factor));
        let hints = [(3, 3), (4, 4), (5, 5)].map(plain).into_iter().chain(multiplied);
        let attempts = testing.chain(hints.map(|hints| self.near(variant, &hints)));
        let mut found: Vec<([usize; 2], Shapes)> = Vec::new();
        for (shapes, short) in self.accepted(attempts, MOST_ELEMENTS).filter(|(shapes, _)| shapes != smallest) {
            found.push((short, shapes));
            let is_enough = found.len() >= MOST_LARGER / 2 && found.iter().any(|(short, _)| *short == [0, 0]);
            if is_enough || found.len() == MOST_LARGER {
                break;
            }
        }
        found.sort_by_key(|(short, _)| *short);
        found.into_iter().map(|(_, shapes)| shapes).collect()
    }

    /// Shapes of at least these lengths that satisfy the constraints of both models, if such are found.
    fn near(&self, variant: &Variant, hints: &Shapes) -> Shapes {
        let mut shapes = hints.clone();
        for _ in 0..MOST_ROUNDS {
            let before = shapes.clone();
            for (side, lengths) in variant.lengths.iter().enumerate() {
                let wanted = self.lengths(side, lengths, &shapes);
                let Some(found) = lengths.fitting(&wanted) else { return shapes };
                for (symbol, length) in lengths.symbols.iter().zip(found) {
                    for (input, axis) in
                        symbol.axes.iter().filter_map(|&(id, axis)| Some((self.input(side, id)?, axis)))
                    {
                        shapes[input][axis] = usize::try_from(length).unwrap_or(1);
                    }
                }
            }
            if shapes == before {
                break;
            }
        }
        shapes
    }

    /// Increases lengths until no layer of A mixes values along an axis that is shorter than [`LONG`].
    fn testing(&self, variant: &Variant, mut hints: Shapes) -> Shapes {
        let own = &variant.lengths[0];
        let mut shapes = self.near(variant, &hints);
        for _ in 0..MOST_ROUNDS {
            let lengths = self.lengths(0, own, &shapes);
            let of = |&(tensor, axis): &(Output, i64), lengths: &[i64]| {
                let dims = own.lengths_of(tensor, lengths)?;
                let axis = if axis < 0 { axis + dims.len() as i64 } else { axis };
                *dims.get(usize::try_from(axis).ok()?)?
            };
            let short: Vec<_> =
                variant.mixed.iter().filter(|at| of(at, &lengths).is_some_and(|length| length < LONG)).collect();
            for (at, symbol) in own.symbols.iter().enumerate() {
                let mut far = lengths.clone();
                far[at] = far[at].saturating_mul(1 << MOST_ROUNDS);
                if short.iter().any(|at| of(at, &far) > of(at, &lengths)) {
                    for (input, axis) in symbol.axes.iter().filter_map(|&(id, axis)| Some((self.input(0, id)?, axis))) {
                        hints[input][axis] = usize::try_from(lengths[at].saturating_mul(2)).unwrap_or(1);
                    }
                }
            }
            let next = self.near(variant, &hints);
            if next == shapes {
                break;
            }
            shapes = next;
        }
        shapes
    }

    fn lengths(&self, side: usize, lengths: &typelift::Shapes, shapes: &Shapes) -> Vec<i64> {
        let found = lengths.symbols.iter().map(|symbol| {
            let given = symbol.axes.iter().filter_map(|&(id, axis)| shapes.get(self.input(side, id)?)?.get(axis));
            given.map(|&dim| dim as i64).max().unwrap_or(1)
        });
        found.collect()
    }

    fn input(&self, side: usize, id: LayerId) -> Option<usize> {
        self.pairs.iter().position(|pair| self.inputs[side][if side == 0 { pair.a } else { pair.b }] == id)
    }

    /// Filters shapes by inference: first those without empty outputs, then those with. Each has the numbers of layers of A
    /// that mix values along an axis of length 1, and along one that is shorter than [`LONG`].
    fn accepted(
        &self,
        attempts: impl Iterator<Item = Shapes>,
        most: u64,
    ) -> impl Iterator<Item = (Shapes, [usize; 2])> {
        let mut seen = HashSet::default();
        let mut tried = attempts.filter(move |shapes| seen.insert(shapes.clone())).fuse();
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

    /// True if both models accept the shapes, false if an output is then empty, and `None` if a model does not
    /// accept them or a tensor is too large. The numbers are those of [`accepted`](Self::accepted).
    fn verdict(&self, shapes: &Shapes, most: u64) -> Option<(bool, [usize; 2])> {
        let models = self.fixed(shapes).ok()?;
        let mut has_values = true;
        for graph in models.iter().map(Model::graph) {
            let computed = graph.layers().filter(|layer| ops::kind(layer) != LayerKind::Constant);
            let mut counts = computed.flat_map(Layer::outputs).filter_map(|port| port.shape().element_count());
            if self.is_open() && counts.any(|count| count > most) {
                return None;
            }
            let outputs = graph.layers().filter(|layer| ops::kind(layer) == LayerKind::Result);
            let mut sources = outputs.filter_map(|layer| graph.output(graph.producer(layer.id().input(0))?));
            has_values &= !sources.any(|port| port.shape().dims().is_some_and(|dims| dims.contains(&Dim::fixed(0))));
        }
        let short = [2, LONG].map(|least| coverage::short(&models[0], self.models[0], least).len());
        Some((has_values, short))
    }

    /// Both models with fixed shapes, inferred.
    ///
    /// # Errors
    /// The shapes break a constraint of a model, or inference refuses them.
    pub(crate) fn fixed(&self, shapes: &Shapes) -> Result<[Model; 2], VerifyError> {
        if let Some(variant) = self.variants.iter().find(|variant| variant.takes(shapes)) {
            for (side, lengths) in variant.lengths.iter().enumerate() {
                self.check(side, lengths, shapes).map_err(|needs| {
                    let fit = self.near(variant, shapes);
                    let fits = self.check(side, lengths, &fit).is_ok();
                    let named =
                        self.pairs.iter().zip(&fit).map(|(pair, dims)| format!("{}={}", pair.name, fixed(dims)));
                    VerifyError::Lengths {
                        side: Side::of(side),
                        needs,
                        fit: if fits { named.collect() } else { Vec::new() },
                    }
                })?;
            }
        }
        let shapes: Vec<Shape> = shapes.iter().map(|dims| fixed(dims)).collect();
        Ok([self.with_shapes(0, &shapes)?, self.with_shapes(1, &shapes)?])
    }

    /// Checks the lengths of inputs against the constraints of a model. The error says what is needed, and why.
    fn check(&self, side: usize, lengths: &typelift::Shapes, shapes: &Shapes) -> Result<(), String> {
        for symbol in &lengths.symbols {
            let mut axes = symbol.axes.iter().zip(symbol.named_axes()).filter_map(|(&(id, axis), (name, _))| {
                Some((format!("{name}[{axis}]"), *shapes.get(self.input(side, id)?)?.get(axis)?))
            });
            let Some((first, length)) = axes.next() else { continue };
            if let Some((other, _)) = axes.find(|(_, other)| *other != length) {
                return Err(format!("{first} == {other}"));
            }
        }
        let own = self.lengths(side, lengths, shapes);
        // An index that leaves its table at all lengths reads zeros, and is no reason to choose others.
        let mut broken = lengths.broken(&own).into_iter();
        let broken = broken.find(|it| !it.symbols.is_empty() || it.reads != Some(Reads::Zeros));
        let Some(broken) = broken else { return Ok(()) };
        let mut needs = broken.named.to_owned();
        if let Some(reason) = broken.because.first() {
            needs += &format!(" (because of the {} `{}`)", reason.operation, reason.layer.full_name());
        }
        let words: Vec<&str> = broken.named.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
        for (symbol, length) in
            lengths.symbols.iter().zip(own).filter(|(symbol, _)| words.contains(&symbol.name.as_str()))
        {
            let axis = symbol.named_axes().next().map(|(input, axis)| format!("{input}[{axis}]"));
            needs += &format!(", and {}, {}, is {length}", &symbol.name, axis.unwrap_or_default());
        }
        Err(needs)
    }

    /// A model with these shapes, inferred. All inputs of any type get the first of [`TYPES`] that inference
    /// accepts.
    ///
    /// # Errors
    /// Inference refuses the shapes.
    fn with_shapes(&self, side: usize, shapes: &[Shape]) -> Result<Model, VerifyError> {
        let places = self.pairs.iter().map(|pair| if side == 0 { pair.a } else { pair.b });
        let ids: Vec<LayerId> = places.filter_map(|at| self.inputs[side].get(at).copied()).collect();
        let graph = self.models[side].graph();
        let is_of_any_type =
            |id: &LayerId| graph.output(id.output(0)).is_some_and(|port| port.element_type() == ElementType::Dynamic);
        let untyped: Vec<LayerId> = ids.iter().copied().filter(is_of_any_type).collect();
        let types = if untyped.is_empty() { &TYPES[..1] } else { &TYPES };
        let mut refused = VerifyError::NoShapes;
        for ty in types {
            let mut model = self.models[side].clone();
            model.edit(|graph: &mut Edit<'_>| {
                untyped.iter().try_for_each(|id| graph.set_attribute(*id, "element_type", ty.name()))?;
                ids.iter()
                    .zip(shapes)
                    .try_for_each(|(id, shape)| graph.set_attribute(*id, "shape", shape.to_attribute()))
            })?;
            match infer(&mut model).into_iter().find(|found| found.is_error()) {
                Some(found) => refused = VerifyError::IllTyped { side: Side::of(side), found: Box::new(found) },
                None => return Ok(model),
            }
        }
        Err(refused)
    }
}

impl Variant {
    /// Shapes whose open dimensions have a length within their limits; the first of several axes is a batch.
    fn plain(&self, length: usize, batch: usize) -> Shapes {
        self.at_least(&|_, _, is_batch| if is_batch { batch } else { length })
    }

    /// Shapes whose open dimensions are as long as `length` says, within their limits. It gets the input, the axis,
    /// and if that is the first of several.
    fn at_least(&self, length: &dyn Fn(usize, usize, bool) -> usize) -> Shapes {
        let found = self.declared.iter().enumerate().map(|(input, shape)| {
            let dims = shape.dims().unwrap_or_default();
            let found = dims.iter().enumerate().map(|(axis, dim)| match dim.value() {
                Some(value) => usize::try_from(value).unwrap_or(0),
                None => {
                    let most = dim.upper().and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
                    let least = usize::try_from(dim.lower()).unwrap_or(0);
                    length(input, axis, axis == 0 && dims.len() > 1).max(least).min(most)
                }
            });
            found.collect()
        });
        found.collect()
    }

    fn takes(&self, shapes: &Shapes) -> bool {
        self.declared.len() == shapes.len()
            && self.declared.iter().zip(shapes).all(|(declared, dims)| declared.rank() == Some(dims.len()))
    }
}

fn fixed(dims: &[usize]) -> Shape {
    Shape::fixed(dims.iter().map(|&dim| dim as i64))
}

fn ranked(shapes: &[Shape]) -> impl Iterator<Item = Vec<Shape>> {
    let ranks = if shapes.iter().any(|shape| shape.rank().is_none()) { &RANKS[..] } else { &RANKS[..1] };
    ranks.iter().map(|&rank| {
        shapes.iter().map(|shape| if shape.rank().is_some() { shape.clone() } else { Shape::of_rank(rank) }).collect()
    })
}
