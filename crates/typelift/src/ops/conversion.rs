//! Effect of a Convert on values.

use std::fmt;

use typelift_promote::{ElementType, Fidelity, Loss, fidelity};

use super::evaluate::moves_values;
use super::kind::{LayerKind, kind};
use super::values::array;
use super::values::conversion::Audit;
use crate::findings::limits;
use crate::model::graph::{Graph, Layer, Output};
use crate::model::weights::Weights;

/// Element types of a Convert, ConvertLike or ConvertPromoteTypes: those of its inputs and of its output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conversion {
    /// The source types.
    pub from: Vec<ElementType>,
    /// The destination type.
    pub to: ElementType,
}

impl Conversion {
    /// Returns the input types whose values can change, with the possible loss of each.
    pub fn lossy(&self) -> impl Iterator<Item = (ElementType, Fidelity)> {
        let known = self.from.iter().filter_map(|&from| Some((from, fidelity(from, self.to)?)));
        known.filter(|(_, fidelity)| !fidelity.is_exact())
    }

    /// Returns the effect on the values of this layer's input: by the values of a constant, otherwise by the types and
    /// by the layers before it, such as a Clamp or a Round.
    pub fn effect(&self, graph: &Graph, weights: &Weights, layer: &Layer) -> Effect {
        let (from, to) = (self.from.first().copied().unwrap_or(ElementType::Dynamic), self.to);
        let Some((from, lost)) = self.lossy().next() else {
            return Effect { losses: fidelity(from, to), from, to, audit: None };
        };
        match converted_values(graph, weights, layer) {
            Some(audit) => {
                let (losses, changed) = (audit.losses(), audit.changed() > 0);
                Effect { losses: Some(losses), from, to, audit: Some(audit).filter(|_| changed) }
            }
            None => {
                let input = graph.producer(layer.id().input(0)).filter(|_| self.from.len() == 1);
                let range = input.map(|input| Range::of(graph, weights, input, MOST_PASSED));
                let can = |loss: &Loss| range.is_none_or(|range| range.can(*loss, to));
                Effect { losses: Some(lost.losses().filter(can).collect()), from, to, audit: None }
            }
        }
    }

    /// Returns the least and the greatest number of this layer's input, as far as one is known besides that of its type.
    pub fn range(&self, graph: &Graph, weights: &Weights, layer: &Layer) -> [Option<f64>; 2] {
        let all = self.from.first().map(|&from| Range::of_type(from));
        let input = graph.producer(layer.id().input(0)).filter(|_| self.from.len() == 1);
        let Some((all, input)) = all.zip(input) else { return [None; 2] };
        let Range { least, most, .. } = Range::of(graph, weights, input, MOST_PASSED);
        [Some(least).filter(|&it| it > all.least), Some(most).filter(|&it| it < all.most)]
    }
}

/// Effect of a Convert on values.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Effect {
    /// The possible losses; those of its values for a constant. `None` for unknown types.
    pub losses: Option<Fidelity>,
    from: ElementType,
    to: ElementType,
    /// The counts of the values of a constant, if some change.
    pub audit: Option<Audit>,
}

impl Effect {
    /// True if every value is kept.
    pub fn is_exact(&self) -> bool {
        self.losses.is_some_and(Fidelity::is_exact)
    }
}

/// Formats as `exact`, `rounds above 2^11, overflows above 65504`, or for a constant `3 of 64 values change: …`.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.audit, self.losses) {
            (Some(audit), _) => audit.fmt(f),
            (None, Some(losses)) => f.write_str(&limits(losses, self.from, self.to)),
            (None, None) => f.write_str("of an unknown type"),
        }
    }
}

/// Returns the conversion that a layer of an inferred graph performs; `None` for other layers.
///
/// # Examples
/// ```
/// let mut model = typelift::Model::from_text("x = Parameter : f32[?]\ny = Convert(x) {destination_type=f16}\nz = Result(y)\n")?;
/// typelift::infer(&mut model);
/// let graph = model.graph();
/// let conversion = typelift::ops::conversion(graph, graph.layer(graph.find("y")?).unwrap()).unwrap();
/// assert_eq!((conversion.from[0].name(), conversion.to.name()), ("f32", "f16"));
/// assert_eq!(conversion.lossy().next().unwrap().1.to_string(), "rounds, overflows");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn conversion(graph: &Graph, layer: &Layer) -> Option<Conversion> {
    let inputs = match kind(layer) {
        // ConvertLike has a second input, whose type is the destination type.
        LayerKind::Convert | LayerKind::ConvertLike => 1,
        LayerKind::ConvertPromoteTypes => 2,
        _ => return None,
    };
    let feeds = graph.feeds(layer.id()).into_iter().take(inputs).flatten();
    let mut from: Vec<_> = feeds.filter_map(|(from, port)| Some(from.outputs().get(port)?.element_type())).collect();
    from.dedup();
    Some(Conversion { from, to: layer.outputs().first()?.element_type() })
}

/// Limit on the values of a constant that are compared.
const MOST_COMPARED: u64 = 1 << 21;

/// Limit on the layers before a Convert that are followed.
const MOST_PASSED: usize = 8;

/// Counts the values of a constant that a Convert changes, directly after it or after a few other Converts. `None` for
/// a Convert of a computed tensor, and for a constant that is large or cannot be read.
fn converted_values(graph: &Graph, weights: &Weights, layer: &Layer) -> Option<Audit> {
    let to = conversion(graph, layer)?.to;
    let mut at = layer;
    for _ in 0..MOST_PASSED {
        let Conversion { from, .. } = conversion(graph, at)?;
        let [from] = from[..] else { return None };
        let (source, _) = graph.feeds(at.id()).into_iter().next()??;
        if kind(source) == LayerKind::Constant {
            let is_small = source.outputs().first()?.shape().element_count()? <= MOST_COMPARED;
            if fidelity(from, to)?.is_exact() {
                return Some(Audit::default());
            }
            return if is_small { Audit::of(source, weights, to) } else { None };
        }
        if at.id() != layer.id() && conversion(graph, at)?.lossy().next().is_some() {
            return None;
        }
        at = source;
    }
    None
}

/// The numbers that a tensor can contain, NaN aside.
#[derive(Clone, Copy, Debug)]
struct Range {
    least: f64,
    most: f64,
    is_whole: bool,
}

impl Range {
    fn of_type(element_type: ElementType) -> Self {
        let limit = |value| array::clamp(element_type, value) as f64;
        match element_type {
            ElementType::Boolean => Self { least: 0.0, most: 1.0, is_whole: true },
            _ if element_type.is_integer() => Self { least: limit(i128::MIN), most: limit(i128::MAX), is_whole: true },
            _ => Self { least: f64::NEG_INFINITY, most: f64::INFINITY, is_whole: false },
        }
    }

    fn exactly(number: f64) -> Self {
        Self { least: number, most: number, is_whole: number.fract() == 0.0 }
    }

    /// The results of a function that is monotonic in both operands, and returns one of them.
    fn with(self, other: Self, function: fn(f64, f64) -> f64) -> Self {
        Self {
            least: function(self.least, other.least),
            most: function(self.most, other.most),
            is_whole: self.is_whole && other.is_whole,
        }
    }

    /// The other range if this one, that of a type, contains it.
    fn within(self, other: Self) -> Self {
        let fits = self.least <= other.least && other.most <= self.most && (other.is_whole || !self.is_whole);
        if fits { other } else { self }
    }

    fn of(graph: &Graph, weights: &Weights, tensor: Output, depth: usize) -> Self {
        let (Some(layer), Some(port)) = (graph.layer(tensor.layer), graph.output(tensor)) else {
            return Self::of_type(ElementType::Dynamic);
        };
        let (ty, any) = (port.element_type(), Self::of_type(port.element_type()));
        let input = |at: usize| {
            let source = graph.producer(layer.id().input(at)).filter(|_| depth > 0);
            source.map_or(any, |source| Self::of(graph, weights, source, depth - 1))
        };
        let name = layer.operation().map_or("", |row| row.name);
        match (name, kind(layer)) {
            ("Floor" | "Ceiling" | "Round", _) => {
                let Self { least, most, .. } = input(0);
                Self { least: least.floor(), most: most.ceil(), is_whole: true }
            }
            ("Clamp", _) => {
                let limit = |key| Some(Self::exactly(array::round(ty, layer.attribute(key)?.parse().ok()?)));
                let (Some(least), Some(most)) = (limit("min"), limit("max")) else { return any };
                input(0).with(least, f64::max).with(most, f64::min)
            }
            ("Add" | "Subtract" | "Multiply", _) if ty.is_float() => {
                let (one, other) = (input(0), input(1));
                let [least, most] = match name {
                    "Add" => [one.least + other.least, one.most + other.most],
                    "Subtract" => [one.least - other.most, one.most - other.least],
                    _ => [any.least, any.most],
                };
                Self {
                    least: array::round(ty, least),
                    most: array::round(ty, most),
                    is_whole: one.is_whole && other.is_whole,
                }
            }
            ("Relu", _) => input(0).with(Self::exactly(0.0), f64::max),
            ("Maximum", _) => input(0).with(input(1), f64::max),
            ("Minimum", _) => input(0).with(input(1), f64::min),
            (_, LayerKind::Convert | LayerKind::ConvertLike) => {
                let Self { least, most, is_whole } = input(0);
                let convert = |number: f64| if ty.is_float() { array::round(ty, number) } else { number.trunc() };
                let found = Self { least: convert(least), most: convert(most), is_whole: is_whole || any.is_whole };
                if ty == ElementType::Boolean { any } else { any.within(found) }
            }
            (_, LayerKind::Constant) if port.shape().element_count() == Some(1) => {
                layer.numbers(weights).and_then(|numbers| numbers.first().copied()).map_or(any, Self::exactly)
            }
            ("Concat" | "Pad" | "Select", _) => any,
            ("Range", _) if ty.is_integer() => {
                let (start, stop) = (input(0), input(1));
                let is_whole = start.is_whole && stop.is_whole;
                any.within(Self { least: start.least.min(stop.least), most: start.most.max(stop.most), is_whole })
            }
            ("ShapeOf" | "NonZero", _) | ("TopK", _) if name != "TopK" || tensor.port == 1 => {
                let source = graph.producer(layer.id().input(0)).and_then(|it| graph.output(it)?.shape().dims());
                let longest = source.and_then(|dims| dims.iter().try_fold(0, |most, dim| Some(dim.upper()?.max(most))));
                // Positions end before the length.
                let most = longest.map(|it| (it - i64::from(name != "ShapeOf")).max(0) as f64);
                any.within(Self { least: 0.0, most: most.unwrap_or(any.most), is_whole: true })
            }
            _ if moves_values(name) || name == "VariadicSplit" => input(0),
            _ => any,
        }
    }

    /// True if a number of the range may be lost in this way.
    fn can(self, loss: Loss, to: ElementType) -> bool {
        let Self { least, most, is_whole } = self;
        let (size, format) = (most.max(-least), to.float_format());
        match (loss, format) {
            (Loss::Truncates, _) => !is_whole,
            (Loss::Wraps, _) => [least, most].into_iter().any(|it| array::clamp(to, it as i128) != it as i128),
            (Loss::Collapses, _) => !is_whole || least < 0.0 || most > 1.0,
            (Loss::Overflows, Some(_)) => size > array::largest_finite(to),
            (Loss::Rounds, Some(format)) => !is_whole || size > 2_f64.powi(i32::from(format.mantissa) + 1),
            _ => true,
        }
    }
}
