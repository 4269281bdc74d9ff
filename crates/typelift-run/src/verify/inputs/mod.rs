//! Generation of inputs: shapes that both models accept, and values that fit their use.

mod roles;
pub(crate) mod shapes;
mod values;

use serde::Serialize;
use typelift::edit::inputs_outputs::End;
use typelift::promote::ElementType;
use typelift::{Model, Weights};

use self::roles::{Role, roles};
use self::shapes::{Shapes, Sizing};
use self::values::{Floats, values};
use super::Tensor;
use super::error::VerifyError;
use super::pairing::{Pair, ends};
use super::random::Random;

/// Description of an input of a sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Fed {
    /// The name of the input.
    pub name: String,
    /// The element type in A.
    pub element_type: String,
    /// The element type in B, if it differs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element_type_in_b: Option<String>,
    /// The shape: `[1,16]`.
    pub shape: String,
    /// Description of the values: `indices 0 to 99`.
    pub values: String,
}

impl Fed {
    /// Describes an input from the user.
    pub(super) fn given(name: &str, tensor: &Tensor) -> Self {
        Self {
            name: name.to_owned(),
            element_type: tensor.element_type.name().to_owned(),
            element_type_in_b: None,
            shape: tensor.shape().to_string(),
            values: "given".to_owned(),
        }
    }
}

/// Inputs of both models for all steps.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    pub(super) fed: Vec<Fed>,
    /// Inputs of A, by step.
    pub(super) a: Vec<Vec<Tensor>>,
    /// Inputs of B, by step.
    pub(super) b: Vec<Vec<Tensor>>,
}

/// Parameters for generating a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Choice {
    pub(super) seed: u64,
    pub(super) steps: usize,
    /// True if masks become longer with each step, as for a growing cache.
    pub(super) grows: bool,
    /// Number of the distribution of floating-point values.
    pub(super) floats: usize,
}

/// Distributions of floating-point values. The first two are for samples in turn, the next if outputs are not finite, and all
/// for models with branches.
const FLOATS: [Floats; 8] = [
    Floats::Normal,
    Floats::Quarter,
    Floats::Unit,
    Floats::Positive,
    Floats::Small,
    Floats::Wide,
    Floats::Raised,
    Floats::Lowered,
];

/// The numbers of the distributions that are tried for a sample, until its outputs are finite. If the range of f16
/// is checked, values stay large. With branches, later samples get each distribution in turn, to run other branches.
pub(super) fn distributions(sample: usize, has_range: bool, has_branches: bool) -> Vec<usize> {
    let own = if has_range { 0 } else { sample % 2 };
    match has_branches && sample > 1 {
        true => vec![sample % FLOATS.len()],
        false => vec![own, 1 - own, 2, 3, 4],
    }
}

/// Two models with the same fixed shapes, and the use of their paired inputs.
pub(super) struct Shaped {
    pub(super) shapes: Shapes,
    roles: Vec<Role>,
    types: Vec<[ElementType; 2]>,
}

impl Shaped {
    /// # Errors
    /// The shapes do not fit.
    pub(super) fn new(sizing: &Sizing<'_>, pairs: &[Pair], shapes: Shapes) -> Result<(Self, [Model; 2]), VerifyError> {
        let fixed = sizing.fixed(&shapes)?;
        let [in_a, in_b] = [roles(&fixed[0]), roles(&fixed[1])];
        let roles = pairs.iter().map(|pair| in_a[pair.a].and(in_b[pair.b])).collect();
        let types = [0, 1].map(|side| {
            ends(End::Input, &fixed[side])
                .iter()
                .map(|layer| layer.outputs().first().map_or(ElementType::Dynamic, |port| port.element_type()))
                .collect::<Vec<_>>()
        });
        let types = pairs.iter().map(|pair| [types[0][pair.a], types[1][pair.b]]).collect();
        Ok((Self { shapes, roles, types }, fixed))
    }

    /// Fails if the values of all inputs in `steps` steps exceed the memory limit.
    pub(super) fn check_memory(&self, pairs: &[Pair], steps: usize, weights: &Weights) -> Result<(), VerifyError> {
        let mut all = 0_u64;
        for (pair, dims) in pairs.iter().zip(&self.shapes) {
            all = all.saturating_add(dims.iter().fold(steps as u64, |count, &dim| count.saturating_mul(dim as u64)));
            weights.hold(all).map_err(|reason| {
                VerifyError::Inputs(format!("values for the input `{}` cannot be generated: {reason}", pair.name))
            })?;
        }
        Ok(())
    }

    /// Generates a sample; `None` if an input is not numeric.
    pub(super) fn sample(&self, pairs: &[Pair], choice: Choice) -> Option<Sample> {
        let mut sample = Sample::default();
        let empty = || vec![Tensor::new(ElementType::F32, Vec::new(), Vec::new()); pairs.len()];
        for step in 0..choice.steps {
            let (mut in_a, mut in_b) = (empty(), empty());
            for (at, pair) in pairs.iter().enumerate() {
                let (role, [own, other]) = (self.roles[at], self.types[at]);
                let mut dims = self.shapes[at].clone();
                if let Some(last) = dims.last_mut().filter(|_| choice.grows && role.is_mask) {
                    *last *= step + 1;
                }
                let mut random = Random::new(choice.seed ^ (at as u64) << 32 ^ (step as u64) << 16);
                let made = values(narrower(own, other), &dims, role, FLOATS[choice.floats], step, &mut random);
                in_a[pair.a] = made.tensor(own, &dims)?;
                in_b[pair.b] = made.tensor(other, &dims)?;
                if step == 0 {
                    sample.fed.push(Fed {
                        name: pair.name.clone(),
                        element_type: own.name().to_owned(),
                        element_type_in_b: (own != other).then(|| other.name().to_owned()),
                        shape: in_a[pair.a].shape().to_string(),
                        values: made.words,
                    });
                }
            }
            sample.a.push(in_a);
            sample.b.push(in_b);
        }
        Some(sample)
    }
}

/// The type whose values both types can represent, or nearly: the one with fewer bits, and an integer rather
/// than a float.
fn narrower(a: ElementType, b: ElementType) -> ElementType {
    match (a.is_float(), b.is_float()) {
        (true, false) => b,
        (false, true) => a,
        _ if b.bits() < a.bits() => b,
        _ => a,
    }
}
