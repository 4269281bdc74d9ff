//! Removal of constants' values, so that a model can be shared without its weights.
//!
//! The weights of the result hold the values that shapes depend on, and one run of bytes that all other constants share: zeros
//! for integers, then zeros or random numbers.

use std::collections::BTreeSet;

use typelift_promote::{ElementType, Kind};

use crate::base::hash::{HashMap, HashSet};
use crate::model::graph::{EditError, Graph, Layer, LayerId, Model, Place};
use crate::model::weights::Weights;
use crate::ops::{self, LayerKind};
use crate::precision::shape_paths;

/// Values that replace those of constants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Values {
    /// Zeros.
    Zero,
    /// Small finite random numbers; zeros for integers that are used as indices.
    Random,
}

/// Result of stripping a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stripped {
    /// The number of constants whose values were replaced.
    pub replaced: usize,
    /// The number of constants that kept their values, because shapes, axes or attributes are computed from them.
    pub kept: usize,
}

/// Alignment of constants in bytes.
const ALIGNMENT: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Zeros,
    Run,
}

/// Replaces the values of all constants on which no shape depends. Types and shapes of the model stay the same, and
/// OpenVINO can load it.
///
/// # Errors
/// [`EditError::NoWeights`] if the bytes of constants are not there. [`EditError::Other`] if the new weights need more memory
/// than [`Weights::with_memory`] allows.
///
/// # Examples
/// ```
/// use typelift::convert::strip::{strip_weights, Values};
/// # let mut model = typelift::Model::open(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/model.xml"))?;
/// let stripped = strip_weights(&mut model, Values::Zero)?;
/// assert_eq!((stripped.replaced, stripped.kept), (1, 0));
/// let scale = model.graph().layer(model.graph().find("scale")?).unwrap();
/// assert_eq!(scale.numbers(model.weights()), Some(vec![0.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn strip_weights(model: &mut Model, values: Values) -> Result<Stripped, EditError> {
    let shapes = shape_paths::find(model);
    let mut constants: Vec<(Place, LayerId, (u64, u64), Fate)> = Vec::new();
    for (place, graph) in model.walk() {
        for layer in graph.layers().filter(|layer| ops::kind(layer) == LayerKind::Constant) {
            let Some(range) = layer.byte_count("offset").zip(layer.byte_count("size")) else { continue };
            let fate = if shapes.contains(&(place.clone(), layer.id())) { Fate::Kept } else { fate(graph, layer) };
            constants.push((place.clone(), layer.id(), range, fate));
        }
    }
    let longest = |fate: Fate| constants.iter().filter(|it| it.3 == fate).map(|it| it.2.1).max().unwrap_or(0);
    let kept: BTreeSet<_> = constants.iter().filter(|it| it.3 == Fate::Kept).map(|it| it.2).collect();
    let sizes = kept.iter().map(|&(_, size)| size).chain([longest(Fate::Zeros), longest(Fate::Run)]);
    let needed = sizes.fold(0, |sum: u64, size| sum.saturating_add(size).saturating_add(ALIGNMENT as u64));
    let too_large = |reason| EditError::Other(format!("the new weights are too large: {reason}"));
    model.weights().reserve(needed).map_err(too_large)?;
    let (zeros, run) = (longest(Fate::Zeros) as usize, longest(Fate::Run) as usize);
    let zeros = zeros.next_multiple_of(ALIGNMENT);
    let (mut bytes, known) = kept_values(model.weights(), kept)?;
    let start = bytes.len() as u64;
    match values {
        Values::Zero => bytes.resize(bytes.len() + zeros.max(run), 0),
        Values::Random => {
            bytes.resize(bytes.len() + zeros, 0);
            bytes.extend(small_numbers(run));
        }
    }
    let of_run = if values == Values::Zero { start } else { start + zeros as u64 };
    let mut stripped = Stripped::default();
    model.edit(|graph| {
        for (place, id, range, fate) in &constants {
            let offset = match fate {
                Fate::Kept => known.get(range).copied().unwrap_or_default(),
                Fate::Zeros => start,
                Fate::Run => of_run,
            };
            stripped.kept += usize::from(*fate == Fate::Kept);
            stripped.replaced += usize::from(*fate != Fate::Kept);
            graph.at(place)?.set_attribute(*id, "offset", offset)?;
        }
        Ok(())
    })?;
    model.set_weights(Weights::in_place_of_file(bytes));
    Ok(stripped)
}

/// Bytes of constants, and the offset of each range of the old weights in them.
type KeptValues = (Vec<u8>, HashMap<(u64, u64), u64>);

fn kept_values(weights: &Weights, ranges: BTreeSet<(u64, u64)>) -> Result<KeptValues, EditError> {
    let (mut bytes, mut known) = (Vec::new(), HashMap::default());
    for (offset, size) in ranges {
        known.insert((offset, size), bytes.len() as u64);
        bytes.extend(weights.read(offset, size as usize).ok_or(EditError::NoWeights)?);
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    }
    Ok((bytes, known))
}

/// Decides about a constant on which no shape depends. Floating-point numbers and quantized weights are replaced.
/// Other integers become zeros if they are only data or indices. They are kept if they can be axes or sizes.
fn fate(graph: &Graph, constant: &Layer) -> Fate {
    let ty = constant.outputs().first().map_or(ElementType::Dynamic, |port| port.element_type());
    match ty.kind() {
        Kind::Float => Fate::Run,
        Kind::Signed | Kind::Unsigned | Kind::Boolean => {
            let mut uses = Uses { graph, seen: HashSet::default(), is_data: true, is_weight: false };
            uses.follow(constant.id());
            match (uses.is_data, uses.is_weight && ty.bits() <= 8) {
                (false, _) => Fate::Kept,
                (true, true) => Fate::Run,
                (true, false) => Fate::Zeros,
            }
        }
        _ => Fate::Kept,
    }
}

/// Uses of a constant's values, found by following them through the graph.
struct Uses<'g> {
    graph: &'g Graph,
    seen: HashSet<LayerId>,
    /// True if all uses treat the values as data or indices, so that zeros are valid.
    is_data: bool,
    /// True if a use converts the values to floating-point numbers, as for quantized weights.
    is_weight: bool,
}

impl Uses<'_> {
    fn follow(&mut self, id: LayerId) {
        if !self.seen.insert(id) {
            return;
        }
        let uses: Vec<_> = self.graph.uses(id).collect();
        for (_, input) in uses {
            let Some(user) = self.graph.layer(input.layer) else { continue };
            let name = user.operation().map_or("", |operation| operation.name);
            let makes_floats = user.outputs().iter().any(|port| port.element_type().is_float());
            match (name, input.port) {
                ("Convert", _) if makes_floats => self.is_weight = true,
                ("Convert" | "Squeeze" | "Unsqueeze" | "Reshape", 0) => self.follow(user.id()),
                ("Gather", 0 | 1) | ("Select", _) => {
                    if !makes_floats {
                        self.follow(user.id());
                    }
                }
                (
                    "Equal" | "NotEqual" | "Less" | "LessEqual" | "Greater" | "GreaterEqual" | "LogicalAnd"
                    | "LogicalOr",
                    _,
                ) => {}
                _ => self.is_data = false,
            }
        }
    }
}

fn small_numbers(length: usize) -> impl Iterator<Item = u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    (0..length).map(move |at| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let random = (state >> 32) as u8;
        // This byte has the sign and exponent of a number. The values are from 0.5 to 2 in f16, and from 2^-15 to 2^-7
        // in f32.
        if at % 2 == 1 { random & 0x83 | 0x38 } else { random & 0xBF }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn random_bytes_are_finite_in_every_type() {
        let bytes: Vec<u8> = small_numbers(4096).collect();
        let weights = Weights::from_bytes(bytes.clone());
        for ty in ElementType::all().filter(|ty| ty.is_float() && ty.port_name().is_some()) {
            let count = 4096 * 8 / u64::from(ty.bits());
            let floats = ops::values::array::Array::decode_all(ty, [count as usize].into_iter().collect(), &bytes);
            let floats = floats.unwrap().to_floats();
            assert!(floats.iter().all(|value| value.is_finite()), "{ty}");
            assert!(floats.iter().any(|value| *value != floats[0]), "{ty}");
        }
        assert_eq!(weights.len(), Some(4096));
    }
}
