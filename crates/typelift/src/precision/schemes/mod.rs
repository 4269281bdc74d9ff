//! Recognition of quantized constants, which are stored as codes with scales, whatever tool wrote them.
//!
//! The layers compute `(codes - zero point) * scale`, with Converts, a Reshape or a Transpose. Models from nncf, ONNX
//! QuantizeLinear, GPTQ and AWQ all have this form. With a code book, a Gather from a small table takes the place of
//! the codes.

mod operand;
mod simulated;
mod values;

use std::fmt;

use serde::{Serialize, Serializer};
use typelift_promote::{ElementType, Kind};

pub(crate) use self::operand::Operand;
pub use self::simulated::Simulated;
pub(crate) use self::simulated::find_simulated;
pub(crate) use self::values::{Dequantized, Values};
use crate::base::hash::HashSet;
use crate::edit::numbers::{RUN, runs};
use crate::model::graph::{Graph, Layer, LayerId, Output};
use crate::model::weights::Weights;
use crate::ops::{self, LayerKind};

/// Set of values that share a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Sharing {
    /// All values of the constant.
    Tensor,
    /// All values of a channel.
    Channel,
    /// This many values of a channel.
    Group(u64),
    /// Each value has its own scale.
    Value,
}

/// Storage format of a quantized constant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Scheme {
    /// The element type of the codes.
    pub element_type: ElementType,
    /// True if a zero point other than the middle of the range is stored.
    pub has_zero_point: bool,
    /// True if codes are indices into a table of values.
    pub has_code_book: bool,
    /// The set of values that share a scale.
    pub sharing: Sharing,
    /// The element type of the stored scales.
    pub scales: ElementType,
}

impl Serialize for Scheme {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Formats the scheme: `int4 asymmetric, groups of 128`, `nf4, per channel, f32 scales`. Scales are in f16 unless another
/// type is named.
impl fmt::Display for Scheme {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ty = self.element_type;
        match (ty.is_integer(), self.has_code_book) {
            (_, true) => write!(f, "code book of {} entries", 1_u64 << ty.bits().min(16))?,
            (true, _) => {
                let symmetry = if self.has_zero_point { "asymmetric" } else { "symmetric" };
                let stored = if ty.kind() == Kind::Unsigned && !self.has_zero_point { " as unsigned" } else { "" };
                write!(f, "int{} {symmetry}{stored}", ty.bits())?;
            }
            (false, _) => write!(f, "{ty}")?,
        }
        write!(f, ", {}", self.sharing)?;
        if self.scales == ElementType::F16 { Ok(()) } else { write!(f, ", {} scales", self.scales) }
    }
}

/// Formats the set: `per channel`, `groups of 128`.
impl fmt::Display for Sharing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tensor => f.write_str("per tensor"),
            Self::Channel => f.write_str("per channel"),
            Self::Group(size) => write!(f, "groups of {size}"),
            Self::Value => f.write_str("a scale per value"),
        }
    }
}

/// Quantized constant, with the layers that compute its values.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuantizedConstant {
    /// The layer that contains the codes.
    pub codes: LayerId,
    /// The tensor with the computed values.
    pub value: Output,
    /// The layers from the codes to the values, except constants.
    pub layers: Vec<LayerId>,
    /// The storage format.
    pub scheme: Scheme,
    pub(super) zero: Option<Operand>,
    pub(super) scale: Operand,
    pub(super) book: Option<Vec<f32>>,
    /// The dimensions of the codes at the multiplication by the scale.
    pub(super) dims: Vec<usize>,
    /// The axes of a Transpose after the multiplication, if there is one.
    pub(super) order: Option<Vec<usize>>,
}

/// Finds the quantized constants of a graph, in the order of the file. Types and shapes must be inferred.
///
/// # Examples
/// ```
/// use typelift::precision::schemes;
/// # let model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// assert!(schemes::find(model.graph(), model.weights()).is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn find(graph: &Graph, weights: &Weights) -> Vec<QuantizedConstant> {
    let multiplies = graph.layers().filter(|layer| name(layer) == "Multiply");
    multiplies.filter_map(|layer| recognize(graph, weights, layer.id())).collect()
}

fn name(layer: &Layer) -> &'static str {
    layer.operation().map_or("", |operation| operation.name)
}

/// The layer that feeds an input, if it has exactly one output.
fn source(graph: &Graph, id: LayerId, input: usize) -> Option<&Layer> {
    graph.layer(graph.producer(id.input(input))?.layer)
}

pub(crate) fn is_code(ty: ElementType) -> bool {
    ty.bits() <= 8 && ty != ElementType::Boolean && ty != ElementType::F8E8M0 && ty != ElementType::Dynamic
}

/// Codes, and the layers between them and a Multiply.
struct CodesPath<'g> {
    constant: &'g Layer,
    layers: Vec<LayerId>,
    zero: Option<LayerId>,
    book: Option<LayerId>,
    /// The dimensions of the values that are multiplied.
    dims: Vec<usize>,
}

impl<'g> CodesPath<'g> {
    fn find(graph: &'g Graph, multiply: LayerId, input: usize) -> Option<Self> {
        let mut at = source(graph, multiply, input)?;
        let dims = dims_of(at)?;
        let (mut layers, mut zero, mut book) = (Vec::new(), None, None);
        loop {
            if ops::is_constant(at) {
                let ty = at.outputs().first()?.element_type();
                let is_known = !layers.is_empty() && is_code(ty);
                layers.reverse();
                return is_known.then_some(Self { constant: at, layers, zero, book, dims });
            }
            layers.push(at.id());
            at = match name(at) {
                "Convert" => source(graph, at.id(), 0)?,
                "Subtract" if zero.is_none() && book.is_none() => {
                    zero = Some(source(graph, at.id(), 1)?.id());
                    source(graph, at.id(), 0)?
                }
                "Gather" if zero.is_none() && book.is_none() => {
                    book = Some(source(graph, at.id(), 0)?.id());
                    source(graph, at.id(), 1)?
                }
                _ => return None,
            };
        }
    }
}

pub(super) fn dims_of(layer: &Layer) -> Option<Vec<usize>> {
    let dims = layer.outputs().first()?.shape().to_static()?;
    dims.into_iter().map(|dim| usize::try_from(dim).ok()).collect()
}

fn recognize(graph: &Graph, weights: &Weights, multiply: LayerId) -> Option<QuantizedConstant> {
    let sides = [0, 1].into_iter().filter_map(|input| {
        let codes = CodesPath::find(graph, multiply, input)?;
        let scale = Operand::of(graph, weights, multiply, 1 - input)?;
        scale.fits(&codes.dims).then_some((codes, scale))
    });
    let mut found: Vec<_> = sides.collect();
    found.sort_by_key(|(codes, _)| std::cmp::Reverse(codes.dims.iter().product::<usize>()));
    let (codes, scale) = found.into_iter().next()?;
    let zero = match codes.zero {
        Some(zero) => Some(Operand::at(graph, weights, zero)?).filter(|zero| zero.fits(&codes.dims)),
        None => None,
    };
    if zero.is_none() && codes.zero.is_some() {
        return None;
    }
    let book = match codes.book {
        Some(book) => Some(Operand::at(graph, weights, book)?.values),
        None => None,
    };
    let ty = codes.constant.outputs().first()?.element_type();
    let middle = if ty.kind() == Kind::Unsigned { 2_f32.powi(ty.bits().cast_signed() - 1) } else { 0.0 };
    let scheme = Scheme {
        element_type: ty,
        has_zero_point: zero.as_ref().is_some_and(|zero| zero.values().iter().any(|&value| value != middle)),
        has_code_book: book.is_some(),
        sharing: scale.sharing(&codes.dims),
        scales: scale.stored,
    };
    let mut found = QuantizedConstant {
        codes: codes.constant.id(),
        value: multiply.output(0),
        layers: codes.layers.into_iter().chain([multiply]).collect(),
        scheme,
        zero,
        scale,
        book,
        dims: codes.dims,
        order: None,
    };
    found.follow(graph, weights);
    // A separate axis for the values of a group is merged with the axis that counts the groups.
    let has_reshape = found.layers.iter().filter_map(|&id| graph.layer(id)).any(|layer| name(layer) == "Reshape");
    if matches!(found.scheme.sharing, Sharing::Group(_)) && !has_reshape {
        found.scheme.sharing = Sharing::Channel;
    }
    Some(found)
}

impl QuantizedConstant {
    /// Follows the values through layers that only change their shape or type.
    fn follow(&mut self, graph: &Graph, weights: &Weights) {
        let mut seen: HashSet<LayerId> = self.layers.iter().copied().collect();
        loop {
            let mut users = graph.consumers(self.value);
            let (Some(input), None) = (users.next(), users.next()) else { return };
            let Some(layer) = graph.layer(input.layer).filter(|layer| input.port == 0 && seen.insert(layer.id()))
            else {
                return;
            };
            let is_same_count = || {
                layer.outputs().first().and_then(|port| port.shape().element_count())
                    == Some(self.dims.iter().product::<usize>() as u64)
            };
            let follows = match name(layer) {
                "Convert" => layer.outputs().first().is_some_and(|port| port.element_type().is_float()),
                "Reshape" | "Unsqueeze" | "Squeeze" => self.order.is_none() && is_same_count(),
                "Transpose" => {
                    let order = Operand::of(graph, weights, layer.id(), 1);
                    let is_flat = graph.output(self.value).and_then(|port| port.shape().to_static()).map(|it| it.len());
                    let order = order.filter(|_| self.order.is_none() && is_flat == Some(self.dims.len()));
                    self.order = order.map(|order| order.values().iter().map(|&axis| axis as usize).collect());
                    self.order.is_some()
                }
                _ => false,
            };
            if !follows {
                return;
            }
            self.layers.push(layer.id());
            self.value = layer.id().output(0);
        }
    }

    /// `None` if a Transpose reorders the values.
    pub(crate) fn rows(&self) -> Option<Rows> {
        let strides = self.scale.strides(&self.dims).filter(|_| self.order.is_none())?;
        Some(Rows { dims: self.dims.clone(), strides, count: self.scale.values().len() })
    }

    /// Returns the name of the layer that contains the codes.
    pub fn name<'g>(&self, graph: &'g Graph) -> &'g str {
        graph.layer(self.codes).map_or("", Layer::name)
    }

    /// Returns about `most` values in the order of the codes, or all values if they are no more, as
    /// [`Layer::sample`] does.
    pub fn sample(&self, graph: &Graph, weights: &Weights, most: usize) -> Option<Vec<f32>> {
        let values = Values::of(self, graph, weights)?;
        let Some(runs) = runs(values.len() as u64, most) else { return values.part(0..values.len()) };
        let parts: Option<Vec<_>> = runs.map(|at| values.part(at as usize * RUN..(at as usize + 1) * RUN)).collect();
        Some(parts?.concat())
    }

    /// Returns the values: `(code - zero point) * scale` in f32. `None` if they cannot be read.
    pub fn values(&self, graph: &Graph, weights: &Weights) -> Option<Vec<f32>> {
        Values::of(self, graph, weights)?.all()
    }
}

/// Sets of values that share a scale, called rows.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    dims: Vec<usize>,
    strides: Vec<usize>,
    pub(crate) count: usize,
}

impl Rows {
    pub(crate) fn of(&self, value: usize) -> usize {
        place(value, &self.dims, &self.strides)
    }
}

/// The position of a value in a tensor with these strides.
pub(super) fn place(mut at: usize, dims: &[usize], strides: &[usize]) -> usize {
    let mut place = 0;
    for (&dim, stride) in dims.iter().zip(strides).rev() {
        place += at % dim.max(1) * stride;
        at /= dim.max(1);
    }
    place
}

pub(crate) fn is_convert(layer: &Layer) -> bool {
    ops::kind(layer) == LayerKind::Convert
}
